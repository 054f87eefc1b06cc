# Finds Arm's CMSIS-NN, release 7.0.0 or newer. Nothing is downloaded.
#
# Takes, as CMake variables:
#   CMSIS_NN_PATH     (or environment) a source checkout, the folder of its CMSIS-Pack, or an installed library:
#                       CMakeLists.txt, Include/, Source/    built by its own build files, target cmsis-nn
#                       *.pdsc, Include/, Source/            the sources that the pack's description lists
#                       lib*/libcmsis-nn.a or cmsis-nn.a, include/
#   CMSIS_NN_LIBRARY  an archive that is already built of it, with the flags of this project
#   CmsisNN_IN_RAM    its code goes into .time_critical sections, which linker scripts keep in RAM
#
# Gives:
#   CmsisNN::CmsisNN  to link; headers come with it, as a system's
#   CmsisNN_ARCHIVE   the archive's path, or the generator expression for it
#   CmsisNN_FOUND
if(NOT CMSIS_NN_PATH)
    set(CMSIS_NN_PATH "$ENV{CMSIS_NN_PATH}")
endif()
if(CMSIS_NN_PATH)
    get_filename_component(CMSIS_NN_PATH "${CMSIS_NN_PATH}" ABSOLUTE)
endif()
set(CmsisNN_INCLUDE_DIR "")
foreach(folder Include include include/cmsis-nn)
    if(CMSIS_NN_PATH AND NOT CmsisNN_INCLUDE_DIR AND EXISTS "${CMSIS_NN_PATH}/${folder}/arm_nnfunctions.h")
        set(CmsisNN_INCLUDE_DIR "${CMSIS_NN_PATH}/${folder}")
    endif()
endforeach()

set(CmsisNN_ARCHIVE "")
file(GLOB _cmsis_nn_packs "${CMSIS_NN_PATH}/*.pdsc")
file(GLOB _cmsis_nn_archives "${CMSIS_NN_PATH}/lib*/libcmsis-nn.a" "${CMSIS_NN_PATH}/lib*/cmsis-nn.a")
if(CMSIS_NN_LIBRARY)
    set(CmsisNN_ARCHIVE "${CMSIS_NN_LIBRARY}")
elseif(NOT CmsisNN_INCLUDE_DIR)
    # what is missing is said below
elseif(EXISTS "${CMSIS_NN_PATH}/CMakeLists.txt" AND EXISTS "${CMSIS_NN_PATH}/Source")
    add_subdirectory("${CMSIS_NN_PATH}" cmsis-nn EXCLUDE_FROM_ALL)
elseif(_cmsis_nn_packs AND EXISTS "${CMSIS_NN_PATH}/Source")
    list(GET _cmsis_nn_packs 0 _cmsis_nn_pack)
    file(STRINGS "${_cmsis_nn_pack}" _cmsis_nn_lines REGEX "<file [^>]*category=\"source\"")
    set(_cmsis_nn_sources "")
    foreach(line IN LISTS _cmsis_nn_lines)
        if(line MATCHES " name=\"(Source/[^\"]+\\.c)\"")
            list(APPEND _cmsis_nn_sources "${CMSIS_NN_PATH}/${CMAKE_MATCH_1}")
        endif()
    endforeach()
    # Float functions are off unless they are asked for, and nothing here calls them.
    list(FILTER _cmsis_nn_sources EXCLUDE REGEX "_(f16|f32|flt)\\.c$")
    list(REMOVE_DUPLICATES _cmsis_nn_sources)
    add_library(cmsis-nn STATIC EXCLUDE_FROM_ALL ${_cmsis_nn_sources})
    target_include_directories(cmsis-nn PUBLIC "${CmsisNN_INCLUDE_DIR}")
    # What the library's own build files take.
    target_compile_options(cmsis-nn PRIVATE -Ofast)
elseif(_cmsis_nn_archives)
    list(GET _cmsis_nn_archives 0 CmsisNN_ARCHIVE)
endif()

set(_cmsis_nn_link "${CmsisNN_ARCHIVE}")
if(TARGET cmsis-nn)
    # Sections let the linker drop functions that nothing calls.
    target_compile_options(cmsis-nn PRIVATE -ffunction-sections -fdata-sections)
    set(CmsisNN_ARCHIVE $<TARGET_FILE:cmsis-nn>)
    set(_cmsis_nn_link cmsis-nn)
endif()
if(CmsisNN_ARCHIVE AND CmsisNN_IN_RAM AND NOT CMSIS_NN_LIBRARY)
    set(_cmsis_nn_in_ram "${CMAKE_CURRENT_BINARY_DIR}/libcmsis-nn-in-ram.a")
    add_custom_command(OUTPUT "${_cmsis_nn_in_ram}" VERBATIM
        COMMAND "${CMAKE_OBJCOPY}" --prefix-alloc-sections=.time_critical "${CmsisNN_ARCHIVE}" "${_cmsis_nn_in_ram}"
        DEPENDS "${_cmsis_nn_link}")
    add_custom_target(cmsis-nn-in-ram DEPENDS "${_cmsis_nn_in_ram}")
    set(CmsisNN_ARCHIVE "${_cmsis_nn_in_ram}")
    set(_cmsis_nn_link "${_cmsis_nn_in_ram}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CmsisNN
    REQUIRED_VARS CmsisNN_INCLUDE_DIR CmsisNN_ARCHIVE
    REASON_FAILURE_MESSAGE "CMSIS_NN_PATH is '${CMSIS_NN_PATH}'. Set it to Arm's CMSIS-NN, release 7.0.0 or newer: a source \
checkout (CMakeLists.txt, Include/ and Source/), the folder of its CMSIS-Pack (a .pdsc, Include/ and Source/), or an \
installed library (include/arm_nnfunctions.h and lib/libcmsis-nn.a).")

if(CmsisNN_FOUND AND NOT TARGET CmsisNN::CmsisNN)
    add_library(CmsisNN::CmsisNN INTERFACE IMPORTED)
    set_target_properties(CmsisNN::CmsisNN PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${CmsisNN_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES "${_cmsis_nn_link}")
    if(TARGET cmsis-nn-in-ram)
        add_dependencies(CmsisNN::CmsisNN cmsis-nn-in-ram)
    endif()
endif()
