# Bare Cortex-M: own start-up code and linker script.
target_sources(runner PRIVATE port/port.cpp port/startup.cpp)
target_link_options(runner PRIVATE -nostartfiles -T ${CMAKE_CURRENT_SOURCE_DIR}/port/memory.ld)
set_target_properties(runner PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/port/memory.ld)
