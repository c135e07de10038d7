# Checks of the sources. Each is a test where its program is installed.

set(root "${PROJECT_SOURCE_DIR}")
set(c_folders src tools tests examples)
foreach(folder IN LISTS c_folders)
    file(GLOB_RECURSE sources_in_${folder} CONFIGURE_DEPENDS "${root}/${folder}/*.c")
    list(FILTER sources_in_${folder} EXCLUDE REGEX "/tests/consumer/")
    list(APPEND c_sources ${sources_in_${folder}})
endforeach()
file(GLOB formatted_sources CONFIGURE_DEPENDS "${root}/include/clnorm/*.h" "${root}/src/*/*.[ch]" "${root}/cl/*/*.h"
    "${root}/cl/*/*.cl" "${root}/tools/*/*.[ch]" "${root}/tests/*.[ch]" "${root}/tests/fuzz/*.[ch]"
    "${root}/tests/consumer/*.c"
    "${root}/tests/consumer/*.cpp" "${root}/examples/*.c" "${root}/examples/*.cpp"
    "${root}/python/native/*.[ch]")

# clnorm_lint(NAME PROGRAM ARGUMENT...)
function(clnorm_lint name program)
    find_program(CLNORM_PROGRAM_${program} ${program})
    if(CLNORM_PROGRAM_${program})
        clnorm_add_test(lint_${name} ${ARGN})
    else()
        message(STATUS "No ${program}, no test lint_${name}")
    endif()
endfunction()

file(GLOB python_sources CONFIGURE_DEPENDS "${root}/tools/*.py" "${root}/tools/peers/*.py"
    "${root}/python/*.py" "${root}/python/src/clnorm/*.py" "${root}/python/tests/*.py" "${root}/python/benchmarks/*.py"
    "${root}/examples/python/*.py")
clnorm_lint(python python3 python3 -c "import ast, sys\nfor path in sys.argv[1:]: ast.parse(open(path).read(), path)"
    ${python_sources})
file(GLOB shell_scripts CONFIGURE_DEPENDS "${root}/tools/*.sh" "${root}/tests/*.sh" "${root}/tests/consumer/*.sh")
clnorm_lint(shell shellcheck shellcheck --external-sources "--source-path=${root}" --severity=warning
    "${root}/.ci/run" ${shell_scripts})
clnorm_lint(kernels clang "${root}/tests/lint_kernels.sh" clang "${root}/cl")
# Other versions of clang-format format some lines differently.
clnorm_lint(format clang-format-14 clang-format-14 --dry-run -Werror ${formatted_sources})
foreach(folder IN LISTS c_folders)
    set(compiled_sources ${sources_in_${folder}})
    list(FILTER compiled_sources EXCLUDE REGEX "/fuzz/|/peers/") # those are not compiled in this build
    if(NOT TARGET example_mpi_norm)
        list(FILTER compiled_sources EXCLUDE REGEX "/mpi_norm\\.c$")
    endif()
    # The analyzer takes most of the time, and sanitizers check the tests as they run.
    set(checks "")
    if("${folder}" STREQUAL "tests")
        set(checks --checks=-clang-analyzer-*)
    endif()
    clnorm_lint(clang_tidy_${folder} clang-tidy clang-tidy --quiet ${checks} -p "${PROJECT_BINARY_DIR}" ${compiled_sources})
endforeach()
# One configuration is enough: others differ in export attributes, and in the header names of Windows and macOS.
clnorm_lint(cppcheck cppcheck cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --max-configs=1
    --enable=warning,performance,portability --suppress=missingIncludeSystem --suppress=toomanyconfigs
    -I "${root}/include" -I "${root}/src" -I "${root}/cl" -I "${root}/tests" -I "${root}/tools" ${c_sources})
