# The requirements of each part of the build. The library is always built. The tool and the tests are ON, OFF or AUTO: AUTO
# builds a part if its requirements are installed, and else names the missing packages.

# clnorm_missing(RESULT FOUND PACKAGE …): the Debian packages of the pairs whose variable FOUND is false.
function(clnorm_missing result)
    set(missing "")
    set(needs ${ARGN})
    while(needs)
        list(POP_FRONT needs found package)
        if(NOT ${found})
            list(APPEND missing ${package})
        endif()
    endwhile()
    list(JOIN missing " " missing)
    set(${result} "${missing}" PARENT_SCOPE)
endfunction()

# clnorm_part(RESULT OPTION WHAT FOUND PACKAGE …): whether the part is built.
function(clnorm_part result option what)
    set(wanted "${${option}}")
    set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
    if(NOT wanted MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
        message(FATAL_ERROR "${option} is '${wanted}'; expected ON, OFF or AUTO")
    endif()
    clnorm_missing(missing ${ARGN})
    set(built FALSE)
    if(wanted STREQUAL AUTO AND missing)
        message(STATUS "Left out: ${what}. Debian packages that are missing: ${missing}")
    elseif(wanted STREQUAL AUTO)
        set(built TRUE)
    elseif(wanted AND missing)
        message(FATAL_ERROR "${option} is ${wanted}. Debian packages that are missing: ${missing}. "
            "-D${option}=AUTO leaves out ${what}.")
    elseif(wanted)
        set(built TRUE)
    endif()
    set(${result} ${built} PARENT_SCOPE)
endfunction()

find_package(OpenCL 1.2)
find_path(XXHASH_INCLUDE_DIR xxhash.h)
clnorm_missing(missing OpenCL_INCLUDE_DIR opencl-headers OpenCL_LIBRARY ocl-icd-opencl-dev XXHASH_INCLUDE_DIR libxxhash-dev)
if(missing)
    message(FATAL_ERROR "The library cannot be built. Debian packages that are missing: ${missing}")
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(POPT QUIET IMPORTED_TARGET popt)
    pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
    pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
endif()
clnorm_part(clnorm_has_tool CLNORM_BUILD_TOOLS "the command-line tool"
    PkgConfig_FOUND pkg-config POPT_FOUND libpopt-dev JANSSON_FOUND libjansson-dev)

# Tests run on PoCL, whatever else is installed. -DCLNORM_TEST_ICD=/etc/OpenCL/vendors/rusticl.icd takes another
# implementation; with -DCLNORM_TEST_ICD= all are visible, and CLNORM_DEVICE in the environment selects a device.
find_file(CLNORM_TEST_ICD pocl.icd PATHS /etc/OpenCL/vendors /usr/local/etc/OpenCL/vendors NO_DEFAULT_PATH
    DOC "The .icd file of the OpenCL implementation that tests run on; empty: those that the loader finds")
string(COMPARE NOTEQUAL "${CLNORM_TEST_ICD}" "CLNORM_TEST_ICD-NOTFOUND" has_test_icd)
clnorm_part(clnorm_has_tests CLNORM_BUILD_TESTS "the tests"
    PkgConfig_FOUND pkg-config CMOCKA_FOUND libcmocka-dev has_test_icd pocl-opencl-icd)
