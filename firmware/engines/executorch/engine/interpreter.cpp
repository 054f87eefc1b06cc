#include "interpreter.h"

#include <setjmp.h>
#include <string.h>

#include <new>
#include <utility>

// The headers' own log messages would bring their texts and a printf.
#ifndef ET_LOG_ENABLED
#define ET_LOG_ENABLED 0
#endif

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include "port.h"
#include "program.h"

namespace interpreter {

namespace {

namespace et = executorch::runtime;

// The pools were computed from these sizes: with other headers, render again with a deploy that knows them.
static_assert(sizeof(et::EValue) == PROGRAM_EVALUE_BYTES, "another release of ExecuTorch");
static_assert(sizeof(et::etensor::TensorImpl) == PROGRAM_TENSOR_BYTES, "another release of ExecuTorch");
static_assert(sizeof(et::BoxedEvalueList<int64_t>) == PROGRAM_LIST_BYTES, "another release of ExecuTorch");
static_assert(sizeof(et::TensorMeta) == PROGRAM_META_BYTES, "another release of ExecuTorch");

// Room for an object that is made at run time and never destroyed: no constructor runs at start-up.
template <typename T>
class Room {
  public:
    template <typename... Arguments>
    T* make(Arguments&&... arguments) {
        return new (bytes_) T(std::forward<Arguments>(arguments)...);
    }
    T* get() { return std::launder(reinterpret_cast<T*>(bytes_)); }

  private:
    alignas(T) unsigned char bytes_[sizeof(T)];
};

Room<executorch::extension::BufferDataLoader> loader;
Room<et::Program> program;
Room<et::MemoryAllocator> method_pool;
Room<et::MemoryAllocator> temporary_pool;
Room<et::HierarchicalAllocator> planned_memory;
Room<et::MemoryManager> memory;
Room<et::Method> method;
et::Span<uint8_t> memories[PROGRAM_MEMORIES + 1];  // one more, so that there may be none

bool loading_tried;
int32_t loading_status;

// Where to go on when ExecuTorch gives up in the middle of a call.
jmp_buf rescue;
bool guarded;
bool stopped;

int32_t status_of(Stage stage, et::Error error) {
    const uint32_t code = (static_cast<uint32_t>(stage) << 24) | (static_cast<uint32_t>(error) & 0xFFFFFF);
    return static_cast<int32_t>(code);
}

void say(const char* text) {
    port::write(reinterpret_cast<const uint8_t*>(text), strlen(text));
}

[[noreturn]] void stop() {
    if (guarded) {
        longjmp(rescue, 1);
    }
    say("ExecuTorch gave up before the model was loaded\r\n");
    for (;;) {
    }
}

// The log of an ExecuTorch that was built with one: plain text between frames.
void log(et_timestamp_t, et_pal_log_level_t, const char* file, const char*, size_t, const char* message,
         size_t) {
    say(file);
    say(": ");
    say(message);
    say("\r\n");
}

et_timestamp_t ticks() {
    return port::ticks();
}

et_tick_ratio_t nanoseconds_per_tick() {
    return {1000000000u, port::ticks_per_second()};
}

// There is no heap.
void* refuse(size_t) {
    return nullptr;
}

bool lies_where_it_should(const program_tensor& tensor, const et::EValue& value) {
    return value.isTensor() && value.toTensor().const_data_ptr() == tensor.data;
}

// ExecuTorch's own description of an input. One of our own would need a constructor whose name for the linker
// has an int32_t in it: int for some compilers, long for others, and ExecuTorch may be built by another one.
const et::EValue& own_input(size_t index) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return method.get()->get_input(index);
#pragma GCC diagnostic pop
}

// It wants to see every input once; the planned ones stay where they are.
int32_t hand_over(const program_tensor& tensor, size_t index) {
    const et::EValue& value = own_input(index);
    if (value.isTensor() && !tensor.planned) {
        value.toTensor().unsafeGetTensorImpl()->set_data(tensor.data);
    }
    if (!lies_where_it_should(tensor, value)) {
        return status_of(kElsewhere, et::Error::Internal);
    }
    const et::Error error = method.get()->set_input(value, index);
    return error == et::Error::Ok ? 0 : status_of(kInput, error);
}

int32_t hand_over_all() {
    for (size_t i = 0; i < PROGRAM_INPUTS; ++i) {
        const int32_t status = hand_over(program_inputs[i], i);
        if (status != 0) {
            return status;
        }
    }
    for (size_t i = 0; i < PROGRAM_OUTPUTS; ++i) {
        const program_tensor& tensor = program_outputs[i];
        if (!tensor.planned) {
            const et::Error error = method.get()->set_output_data_ptr(tensor.data, tensor.bytes, i);
            if (error != et::Error::Ok) {
                return status_of(kOutput, error);
            }
        }
        if (!lies_where_it_should(tensor, method.get()->get_output(i))) {
            return status_of(kElsewhere, et::Error::Internal);
        }
    }
    return 0;
}

int32_t load_all() {
    et::register_pal(
        et::PalImpl::create(nullptr, stop, ticks, nanoseconds_per_tick, log, refuse, nullptr, __FILE__));
    et::runtime_init();
    loader.make(model_data_program, static_cast<size_t>(PROGRAM_BYTES));
    et::Result<et::Program> opened = et::Program::load(loader.get());
    if (!opened.ok()) {
        return status_of(kProgram, opened.error());
    }
    program.make(std::move(opened.get()));

    for (size_t i = 0; i < PROGRAM_MEMORIES; ++i) {
        memories[i] = {program_memories[i].data, program_memories[i].bytes};
    }
    planned_memory.make(et::Span<et::Span<uint8_t>>(memories, PROGRAM_MEMORIES));
    method_pool.make(static_cast<uint32_t>(PROGRAM_METHOD_POOL), model_arena_method);
    temporary_pool.make(static_cast<uint32_t>(PROGRAM_TEMPORARY_POOL), model_arena_temporary);
    memory.make(method_pool.get(), planned_memory.get(), temporary_pool.get());

    et::Result<et::Method> loaded = program.get()->load_method(PROGRAM_METHOD, memory.get());
    if (!loaded.ok()) {
        return status_of(kMethod, loaded.error());
    }
    method.make(std::move(loaded.get()));
    return hand_over_all();
}

int32_t run_method() {
    const et::Error error = method.get()->execute();
    return error == et::Error::Ok ? 0 : status_of(kRun, error);
}

// Calls a function in which ExecuTorch may give up; after that nothing of it is used any more.
int32_t call(int32_t (*function)()) {
    if (stopped || setjmp(rescue) != 0) {
        guarded = false;
        stopped = true;
        return status_of(kStopped, et::Error::Internal);
    }
    guarded = true;
    const int32_t status = function();
    guarded = false;
    return status;
}

}  // namespace

int32_t load() {
    if (!loading_tried) {
        loading_tried = true;
        loading_status = call(load_all);
    }
    return loading_status;
}

int32_t run() {
    const int32_t status = load();
    return status != 0 ? status : call(run_method);
}

}  // namespace interpreter
