# Takes the Raspberry Pi Pico SDK from PICO_SDK_PATH, a CMake or an environment variable.
if(NOT PICO_SDK_PATH)
    set(PICO_SDK_PATH "$ENV{PICO_SDK_PATH}")
endif()
set(PICO_SDK_PATH "${PICO_SDK_PATH}" CACHE PATH "folder of the Raspberry Pi Pico SDK")
if(NOT EXISTS "${PICO_SDK_PATH}/pico_sdk_init.cmake")
    message(FATAL_ERROR
        "There is no Pico SDK in '${PICO_SDK_PATH}'. Set PICO_SDK_PATH to its folder: a checkout of version 2.1 or newer "
        "with its TinyUSB submodule, or /usr/src/pico-sdk of Debian's packages pico-sdk-source and tinyusb-source.")
endif()
# Without an installed picotool the SDK would clone one from the network. What it is needed for here, a UF2 file, is
# also made by `deploy`; copying the .bin to the board with another tool works as well.
find_program(PICOTOOL picotool)
if(NOT PICOTOOL)
    set(PICO_NO_PICOTOOL 1)
endif()
include("${PICO_SDK_PATH}/pico_sdk_init.cmake")
