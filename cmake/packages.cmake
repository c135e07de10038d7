# Debian packages, one for each component: cmake --preset packages, cmake --build --preset packages, cpack.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME clnorm)
set(CPACK_PACKAGE_CONTACT "The libclnorm authors")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Until 1.0 every minor version may break the ABI, so that the soname and the package's name have it. A later patch may
# replace the one that a program was linked with.
set(abi "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
# A source archive has no builds.
set(CPACK_SOURCE_GENERATOR TXZ)
set(CPACK_SOURCE_IGNORE_FILES "/\\.git/;/build[^/]*/;/__pycache__/")

# clnorm_package(COMPONENT NAME SECTION DESCRIPTION)
macro(clnorm_package component name section description)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}")
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    # Only Debian packages have a folder of documents; a plain installation has none.
    install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" RENAME copyright COMPONENT ${component}
        EXCLUDE_FROM_ALL)
endmacro()

set(about "layer, RMS, group and L2 norm, forward and backward, FP8 quantisation, softmax and GELU on OpenCL devices")
clnorm_package(library libclnorm${abi} libs "The shared library: ${about}.")
clnorm_package(development libclnorm-dev libdevel
    "Headers, the static library, and the files for CMake and pkg-config: ${about}.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libclnorm${abi} (= ${PROJECT_VERSION}), ocl-icd-opencl-dev | opencl-dev, opencl-headers")
if(clnorm_has_tool)
    clnorm_package(tool clnorm utils "The command-line tool, for tensor files: ${about}.")
    set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
endif()

include(CPack)
