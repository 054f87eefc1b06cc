#include "server.h"

#include <string.h>

#include "frame.h"
#include "model.h"
#include "port.h"
#include "stack.h"

namespace server {

namespace {

const size_t kHeader = 2;  // command, sequence number
const size_t kCrc = 4;

struct Request {
    uint8_t command;
    uint8_t sequence;
    const uint8_t* payload;
    size_t size;
};

// What running gave the last time, so that a repeated request is answered and not done again.
struct LastRun {
    bool valid;
    uint8_t command;
    uint8_t sequence;
    int status;
    uint64_t ticks;
};

LastRun last_run;

// Whether a host has said hello since the board started: one that has not may think that its inputs are here.
bool greeted;

uint16_t u16(const uint8_t* bytes) {
    return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8));
}

uint32_t u32(const uint8_t* bytes) {
    return u16(bytes) | (static_cast<uint32_t>(u16(bytes + 2)) << 16);
}

void begin(frame::Writer& writer, const Request& request, Status status) {
    writer.put(static_cast<uint8_t>(request.command | 0x80));
    writer.put(request.sequence);
    writer.put(static_cast<uint8_t>(status));
}

void reply(const Request& request, Status status) {
    frame::Writer writer;
    begin(writer, request, status);
    writer.finish();
}

void put_text(frame::Writer& writer, const char* text) {
    const size_t size = strlen(text);
    writer.put(static_cast<uint8_t>(size));
    writer.put(text, size);
}

void hello(const Request& request) {
    greeted = true;
    last_run.valid = false;  // a new host may count from any sequence number
    const port::Stack stack = port::stack();
    frame::Writer writer;
    begin(writer, request, kOk);
    writer.put(kProtocolVersion);
    writer.put_u16(kMaxPayload);
    writer.put_u32(port::ticks_per_second());
    writer.put_u32(MODEL_ARENA_BYTES);
    writer.put_u32(static_cast<uint32_t>(stack.high - stack.low));
    writer.put(MODEL_INPUTS);
    writer.put(MODEL_OUTPUTS);
    writer.put_u16(MODEL_LAYERS);
    writer.put(model_sha256, sizeof model_sha256);
    put_text(writer, MODEL_NAME);
    put_text(writer, MODEL_BOARD);
    put_text(writer, MODEL_KERNELS);
    writer.finish();
}

void describe(const Request& request) {
    if (request.size != 2 || request.payload[0] > 1 ||
        request.payload[1] >= (request.payload[0] == 0 ? MODEL_INPUTS : MODEL_OUTPUTS)) {
        return reply(request, kBadRequest);
    }
    const model_tensor* tensor =
        request.payload[0] == 0 ? &model_inputs[request.payload[1]] : &model_outputs[request.payload[1]];
    frame::Writer writer;
    begin(writer, request, kOk);
    writer.put(static_cast<uint8_t>(tensor->type));
    writer.put(tensor->rank);
    for (uint8_t i = 0; i < tensor->rank; ++i) {
        writer.put_u32(tensor->dims[i]);
    }
    writer.finish();
}

// Whether `size` bytes at `offset` lie inside `bytes`.
bool inside(uint32_t offset, uint32_t size, uint32_t bytes) {
    return offset <= bytes && size <= bytes - offset;
}

void write(const Request& request) {
    if (request.size < 5 || request.payload[0] >= MODEL_INPUTS) {
        return reply(request, kBadRequest);
    }
    const int index = request.payload[0];
    const uint32_t offset = u32(request.payload + 1);
    const uint32_t size = static_cast<uint32_t>(request.size - 5);
    if (!inside(offset, size, model_inputs[index].bytes)) {
        return reply(request, kBadRequest);
    }
    memcpy(static_cast<uint8_t*>(model_input(index)) + offset, request.payload + 5, size);
    reply(request, kOk);
}

void reply_bytes(const Request& request, const void* data, uint32_t bytes, const uint8_t* range) {
    const uint32_t offset = u32(range);
    const uint16_t size = u16(range + 4);
    if (size > kMaxPayload || !inside(offset, size, bytes)) {
        return reply(request, kBadRequest);
    }
    frame::Writer writer;
    begin(writer, request, kOk);
    writer.put(static_cast<const uint8_t*>(data) + offset, size);
    writer.finish();
}

void read(const Request& request) {
    if (request.size != 7 || request.payload[0] >= MODEL_OUTPUTS) {
        return reply(request, kBadRequest);
    }
    const int index = request.payload[0];
    reply_bytes(request, model_output(index), model_outputs[index].bytes, request.payload + 1);
}

void read_layer(const Request& request) {
    if (request.size != 8 || u16(request.payload) >= MODEL_LAYERS) {
        return reply(request, kBadRequest);
    }
    const model_layer* layer = &model_layers[u16(request.payload)];
    reply_bytes(request, layer->result, layer->bytes, request.payload + 2);
}

void reply_run(const Request& request) {
    frame::Writer writer;
    begin(writer, request, last_run.status == 0 ? kOk : kInferenceFailed);
    if (last_run.status == 0) {
        writer.put_u64(last_run.ticks);
    } else {
        writer.put_u16(static_cast<uint16_t>(last_run.status - 1));
        writer.put_u32(static_cast<uint32_t>(model_kernel_status()));
    }
    writer.finish();
}

// Runs the whole model `count` times, or one layer, and remembers what came of it.
void run(const Request& request) {
    const bool whole = request.command == kInvoke;
    if (request.size != (whole ? 4u : 2u) || (!whole && u16(request.payload) >= MODEL_LAYERS)) {
        return reply(request, kBadRequest);
    }
    const bool repeated =
        last_run.valid && last_run.command == request.command && last_run.sequence == request.sequence;
    if (!repeated) {
        const uint32_t count = whole ? u32(request.payload) : 1;
        last_run = {true, request.command, request.sequence, 0, 0};
        for (uint32_t i = 0; i < count && last_run.status == 0; ++i) {
            const uint32_t start = port::ticks();
            last_run.status = whole ? model_invoke() : model_invoke_layer(u16(request.payload));
            last_run.ticks += static_cast<uint32_t>(port::ticks() - start);
        }
    }
    reply_run(request);
}

void stack_use(const Request& request) {
    frame::Writer writer;
    begin(writer, request, kOk);
    writer.put_u32(stack::high_water(port::stack()));
    writer.finish();
}

void answer(const Request& request) {
    if (!greeted && request.command != kHello) {
        return reply(request, kNotGreeted);
    }
    switch (request.command) {
        case kHello:
            return hello(request);
        case kDescribe:
            return describe(request);
        case kWrite:
            return write(request);
        case kInvoke:
        case kStep:
            return run(request);
        case kRead:
            return read(request);
        case kReadLayer:
            return read_layer(request);
        case kStack:
            return stack_use(request);
        default:
            return reply(request, kUnknownCommand);
    }
}

// Room for the largest request: 2 bytes of header, 5 before the bytes of kWrite, the CRC, and COBS's own.
uint8_t received[kMaxPayload + 24];
size_t received_size;
bool overflow;

// Takes the next byte of the line; true when it ended a request, which is answered.
bool take(uint8_t byte) {
    if (byte != 0) {
        if (received_size < sizeof received) {
            received[received_size++] = byte;
        } else {
            overflow = true;
        }
        return false;
    }
    const size_t decoded = overflow ? 0 : frame::decode(received, received_size);
    received_size = 0;
    overflow = false;
    if (decoded < kHeader + kCrc) {
        return false;
    }
    const size_t end = decoded - kCrc;
    if (frame::crc32(0, received, end) != u32(received + end)) {
        return false;
    }
    answer({received[0], received[1], received + kHeader, end - kHeader});
    return true;
}

}  // namespace

bool poll() {
    bool answered = false;
    for (int byte = port::read(); byte >= 0; byte = port::read()) {
        answered = take(static_cast<uint8_t>(byte)) || answered;
    }
    return answered;
}

void forget() {
    greeted = false;
}

void serve() {
    for (;;) {
        poll();
    }
}

}  // namespace server
