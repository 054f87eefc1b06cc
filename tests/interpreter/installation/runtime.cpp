// Stands in for ExecuTorch's runtime on a microcontroller, which cannot be had here: the functions that a
// runner calls, on the public headers. It keeps to the contract as far as a runner can see it, and computes
// nothing: what execute() does is said by the first number of the input.
//
//   0          the first output becomes the number of registered kernels
//   1 to 255   the error of that code
//   256        a failed check, after which the runtime does not go on
//   257        a log message, then as 0
#include <cstring>

#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

namespace executorch {
namespace runtime {

namespace {

constexpr uint32_t kLargestRegistry = 24;
alignas(Kernel) uint8_t registered_kernels_data[kLargestRegistry * sizeof(Kernel)];
uint32_t registered;
PalImpl platform;
alignas(etensor::TensorImpl) uint8_t place_of_tensor[sizeof(etensor::TensorImpl)];
alignas(EValue) uint8_t place_of_value[sizeof(EValue)];
EValue* value;
bool input_set;
int32_t one = 1;
uint8_t first_axis;

}  // namespace

Error register_kernels(const Span<const Kernel> kernels) {
    for (const Kernel& kernel : kernels) {
        std::memcpy(registered_kernels_data + registered++ * sizeof(Kernel), &kernel, sizeof(Kernel));
    }
    return Error::Ok;
}

PalImpl PalImpl::create(pal_init_method init, pal_abort_method abort, pal_current_ticks_method current_ticks,
                        pal_ticks_to_ns_multiplier_method ticks_to_ns_multiplier,
                        pal_emit_log_message_method emit_log_message, pal_allocate_method allocate,
                        pal_free_method free, const char* source_filename) {
    return {init,     abort, current_ticks,  ticks_to_ns_multiplier, emit_log_message,
            allocate, free,  source_filename};
}

bool register_pal(PalImpl impl) {
    platform = impl;
    return true;
}

void pal_abort() {
    platform.abort();
    for (;;) {
    }
}

void runtime_init() {}

void runtime_abort() {
    pal_abort();
}

// Of what is only logged or not used.
et_timestamp_t internal::get_log_timestamp() {
    return 0;
}

void internal::vlogf(LogLevel, et_timestamp_t, const char*, const char*, size_t, const char*, va_list) {}

Result<FreeableBuffer> internal::PteDataMap::get_data(std::string_view) const {
    return Error::NotFound;
}

Result<uint32_t> internal::PteDataMap::get_num_keys() const {
    return Error::NotFound;
}

Result<const char*> internal::PteDataMap::get_key(uint32_t) const {
    return Error::NotFound;
}

Result<Program> Program::load(DataLoader* loader, Verification) {
    Result<FreeableBuffer> data =
        loader->load(0, 8, DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Program));
    if (!data.ok() || std::memcmp(static_cast<const char*>(data->data()) + 4, "ET12", 4) != 0) {
        return Error::InvalidProgram;
    }
    return Program(loader, 0, std::move(*data), nullptr, FreeableBuffer(), std::nullopt);
}

Result<Method> Program::load_method(const char* name, MemoryManager* memory, EventTracer* tracer,
                                    const NamedDataMap*, const LoadBackendOptionsMap*,
                                    Span<const Kernel>) const {
    if (std::strcmp(name, "forward") != 0) {
        return Error::InvalidArgument;
    }
    if (registered == 0) {
        return Error::OperatorMissing;
    }
    if (memory->method_allocator()->allocate(64) == nullptr) {
        return Error::MemoryAllocationFailed;
    }
    // The models of the tests take one tensor and give one, both at the beginning of their first memory.
    Result<void*> place = memory->planned_memory()->get_offset_address(0, 0, sizeof(float));
    if (!place.ok()) {
        return place.error();
    }
    auto* tensor = new (place_of_tensor)
        etensor::TensorImpl(etensor::ScalarType::Float, 1, &one, *place, &first_axis, &one);
    value = new (place_of_value) EValue(etensor::Tensor(tensor));
    input_set = false;
    return Method(this, memory, tracer, memory->temp_allocator());
}

etensor::TensorImpl::TensorImpl(ScalarType type, ssize_t dim, SizesType* sizes, void* data,
                                DimOrderType* dim_order, StridesType* strides, TensorShapeDynamism dynamism,
                                DeviceType device_type, DeviceIndex device_index)
    : sizes_(sizes),
      dim_order_(dim_order),
      strides_(strides),
      data_(data),
      dim_(dim),
      numel_(0),
      numel_bound_(0),
      type_(type),
      shape_dynamism_(dynamism),
      device_(device_type, device_index) {}

const EValue& Method::get_input(size_t) const {
    return *value;
}

Error Method::set_input(const EValue& given, size_t index) {
    if (index != 0 || !given.isTensor() ||
        given.toTensor().const_data_ptr() != value->toTensor().const_data_ptr()) {
        return Error::InvalidArgument;
    }
    input_set = true;
    return Error::Ok;
}

Error Method::set_output_data_ptr(void*, size_t, size_t) {
    return Error::NotSupported;
}

const EValue& Method::get_output(size_t) const {
    return *value;
}

Error Method::execute() {
    if (!input_set) {
        return Error::InvalidState;
    }
    float first;
    std::memcpy(&first, value->toTensor().const_data_ptr(), sizeof first);
    const int what = static_cast<int>(first);
    ET_CHECK_MSG(what != 256, "a failed check");
    if (what == 257) {
        platform.emit_log_message(0, kInfo, "standin.cpp", "execute", 1, "hello from the runtime", 22);
    }
    if (what > 0 && what < 256) {
        return static_cast<Error>(what);
    }
    const float count = static_cast<float>(registered);
    std::memcpy(value->toTensor().mutable_data_ptr<float>(), &count, sizeof count);
    return Error::Ok;
}

Method::~Method() {}

}  // namespace runtime
}  // namespace executorch
