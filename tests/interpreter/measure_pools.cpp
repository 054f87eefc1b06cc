// Loads the method of every program named on the command line with the real runtime, from pools of the sizes
// that follow each name, and prints what came of it: the error code, bytes taken for the method, most bytes
// of temporary memory.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

using namespace executorch::runtime;

namespace {

class Peak final : public MemoryAllocator {
  public:
    using MemoryAllocator::MemoryAllocator;
    void reset() override {
        most = used_size() > most ? used_size() : most;
        MemoryAllocator::reset();
    }
    size_t most = 0;
};

uint8_t method_pool[1 << 22];
uint8_t temporary_pool[1 << 16];

bool measure(const char* name, uint32_t method_bytes, uint32_t temporary_bytes) {
    std::ifstream file(name, std::ios::binary);
    const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
    void* pte = std::aligned_alloc(64, (read.size() + 63) / 64 * 64);
    std::memcpy(pte, read.data(), read.size());
    executorch::extension::BufferDataLoader loader(pte, read.size());
    Result<Program> program = Program::load(&loader);
    if (!program.ok()) {
        return false;
    }
    const char* method = program->get_method_name(0).get();
    Result<MethodMeta> meta = program->method_meta(method);
    std::vector<std::vector<uint8_t>> memories;
    for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
        memories.emplace_back(meta->memory_planned_buffer_size(i).get());
    }
    std::vector<Span<uint8_t>> spans;
    for (auto& memory : memories) {
        spans.push_back({memory.data(), memory.size()});
    }
    HierarchicalAllocator planned({spans.data(), spans.size()});
    MemoryAllocator pool(method_bytes, method_pool);
    Peak temporary(temporary_bytes, temporary_pool);
    MemoryManager manager(&pool, &planned, &temporary);
    Result<Method> loaded = program->load_method(method, &manager);
    std::printf("%u %zu %zu\n", static_cast<unsigned>(loaded.error()), pool.used_size(), temporary.most);
    std::free(pte);
    return true;
}

}  // namespace

int main(int count, char** words) {
    runtime_init();
    for (int i = 1; i + 2 < count; i += 3) {
        if (!measure(words[i], std::strtoul(words[i + 1], nullptr, 10),
                     std::strtoul(words[i + 2], nullptr, 10))) {
            return 1;
        }
    }
}
