# Finds an ExecuTorch that was built and installed for this board, and links it to a target.
#
# EXECUTORCH_PATH (variable or environment; CMAKE_PREFIX_PATH serves as well) is the folder it was installed to, the one
# that holds include and lib. EXECUTORCH_OPERATOR_LIBRARIES names the targets that register the program's operators.
if(NOT EXECUTORCH_PATH)
    set(EXECUTORCH_PATH "$ENV{EXECUTORCH_PATH}")
endif()
set(EXECUTORCH_PATH "${EXECUTORCH_PATH}" CACHE PATH "folder that ExecuTorch was installed to")
find_package(executorch CONFIG HINTS "${EXECUTORCH_PATH}" CMAKE_FIND_ROOT_PATH_BOTH)
if(NOT TARGET executorch_core)
    message(FATAL_ERROR
        "There is no ExecuTorch for this board in '${EXECUTORCH_PATH}'. Build release ${EXECUTORCH_RELEASE} with this "
        "project's compiler flags, install it, and set EXECUTORCH_PATH to the folder; docs/engines.md of deploy has the "
        "options. (The Python package's ExecuTorch runs on the development machine only.)")
endif()

function(link_executorch target)
    target_include_directories(${target} SYSTEM PRIVATE ${EXECUTORCH_INCLUDE_DIRS})
    # The headers' copy of c10 would otherwise look for a file that only PyTorch's own build makes.
    target_compile_definitions(${target} PRIVATE C10_USING_CUSTOM_GENERATED_MACROS)
    foreach(library IN LISTS EXECUTORCH_OPERATOR_LIBRARIES)
        if(NOT TARGET ${library})
            message(FATAL_ERROR "The ExecuTorch in '${EXECUTORCH_PATH}' has no ${library}, which registers operators.")
        endif()
        # Operators are registered by constructors that nothing refers to: the whole library has to be linked.
        get_target_property(options ${library} INTERFACE_LINK_OPTIONS)
        if(NOT options MATCHES "whole-archive")
            target_link_options(${target} PRIVATE
                "SHELL:-Wl,--whole-archive $<TARGET_FILE:${library}> -Wl,--no-whole-archive")
        endif()
        # For linking only: what ExecuTorch was compiled with is not what the runner is compiled with.
        target_link_libraries(${target} PRIVATE "$<LINK_ONLY:${library}>")
    endforeach()
    target_link_libraries(${target} PRIVATE "$<LINK_ONLY:executorch_core>")
endfunction()
