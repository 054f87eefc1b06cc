# Arm GNU toolchain for bare-metal targets. The compiler is looked for on PATH, and first in ARM_TOOLCHAIN_BIN
# (variable or environment), the folder of arm-none-eabi-gcc.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)

set(hints ${ARM_TOOLCHAIN_BIN} $ENV{ARM_TOOLCHAIN_BIN})
find_program(CMAKE_C_COMPILER arm-none-eabi-gcc HINTS ${hints} REQUIRED)
find_program(CMAKE_CXX_COMPILER arm-none-eabi-g++ HINTS ${hints} REQUIRED)
find_program(CMAKE_ASM_COMPILER arm-none-eabi-gcc HINTS ${hints} REQUIRED)

# A bare-metal program does not link without a board's start-up code: test the compiler with a library.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .elf)

# nano.specs: newlib's small variant. nosys.specs: no operating system behind it.
add_link_options(--specs=nano.specs --specs=nosys.specs)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
