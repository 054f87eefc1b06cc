# The target `kernels`: what a runner links to compute its layers, headers included. For a build by hand:
#
#   DEPLOY_KERNELS         a libdeploy_kernels.a that is already built with the same flags, to link instead of kernels/
#   DEPLOY_KERNELS_IN_RAM  run the kernels from RAM
#   CMSIS_NN_PATH, CMSIS_NN_LIBRARY   where a project is rendered for Arm's CMSIS-NN: see FindCmsisNN.cmake
set(DEPLOY_KERNELS "" CACHE FILEPATH "libdeploy_kernels.a to link instead of building kernels/")

if(DEPLOY_KERNELS)
    add_library(deploy_kernels STATIC IMPORTED)
    set_target_properties(deploy_kernels PROPERTIES
        IMPORTED_LOCATION ${DEPLOY_KERNELS}
        INTERFACE_INCLUDE_DIRECTORIES
            ${CMAKE_CURRENT_SOURCE_DIR}/kernels/$<IF:$<BOOL:${DEPLOY_KERNELS_BESIDE_CMSIS_NN}>,beside,include>)
else()
    add_subdirectory(kernels)
endif()

add_library(kernels INTERFACE)
if(DEPLOY_KERNELS_BESIDE_CMSIS_NN)
    if(DEFINED ENV{CMSIS_NN_PATH})
        set(CMSIS_NN_RENDERED_FOR "$ENV{CMSIS_NN_PATH}")
    endif()
    set(CMSIS_NN_PATH "${CMSIS_NN_RENDERED_FOR}" CACHE PATH "folder of Arm's CMSIS-NN")
    set(CMSIS_NN_LIBRARY "" CACHE FILEPATH "archive of CMSIS-NN to link instead of building it")
    set(CmsisNN_IN_RAM ${DEPLOY_KERNELS_IN_RAM})
    list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
    find_package(CmsisNN REQUIRED)
    if(SANITIZE AND TARGET cmsis-nn)
        # Sanitizers are for the runner and our kernels.
        target_compile_options(cmsis-nn PRIVATE -fno-sanitize=all)
    endif()
    target_link_libraries(kernels INTERFACE CmsisNN::CmsisNN)
endif()
target_link_libraries(kernels INTERFACE deploy_kernels)
