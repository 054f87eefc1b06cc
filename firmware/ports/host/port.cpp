// The development machine: the serial line is standard input and output, the timer the monotonic clock.
#include "port.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"
#include "stack.h"

namespace port {

namespace {

// The runner has a stack of its own, so that its depth can be measured as on a board.
alignas(4096) uint8_t runner_stack[RUNNER_STACK];

uint8_t buffer[4096];
size_t next_byte;
size_t end_of_bytes;

void* run(void*) {
    runner_main();
    return nullptr;
}

}  // namespace

void init() {}

int read() {
    if (next_byte == end_of_bytes) {
        const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
        if (count <= 0) {
            exit(0);  // the other side hung up
        }
        next_byte = 0;
        end_of_bytes = static_cast<size_t>(count);
    }
    return buffer[next_byte++];
}

void write(const uint8_t* data, size_t size) {
    while (size > 0) {
        const ssize_t count = ::write(STDOUT_FILENO, data, size);
        if (count <= 0) {
            exit(1);
        }
        data += count;
        size -= static_cast<size_t>(count);
    }
}

uint32_t ticks() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint32_t>(static_cast<uint64_t>(now.tv_sec) * 1000000000u +
                                 static_cast<uint64_t>(now.tv_nsec));
}

uint32_t ticks_per_second() {
    return 1000000000;
}

Stack stack() {
    return {runner_stack, runner_stack + sizeof runner_stack};
}

}  // namespace port

int main() {
    stack::paint(port::runner_stack, port::runner_stack + sizeof port::runner_stack);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, port::runner_stack, sizeof port::runner_stack);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, port::run, nullptr) != 0) {
        return 1;
    }
    pthread_join(thread, nullptr);
}
