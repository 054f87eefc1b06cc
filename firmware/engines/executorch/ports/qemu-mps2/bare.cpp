// What C++ libraries expect of an operating system, where there is none and nothing is ever allocated or
// destroyed.
#include <errno.h>
#include <stddef.h>

extern "C" {

void* __dso_handle;

// Destructors at exit: there is no exit.
int __aeabi_atexit(void*, void (*)(void*), void*) {
    return 0;
}

// A call of what no class defines. The library's own would bring all that exceptions need.
void __cxa_pure_virtual() {
    for (;;) {
    }
}

// More heap: there is none.
void* _sbrk(ptrdiff_t) {
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
}

}  // extern "C"

// Virtual destructors refer to it.
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
