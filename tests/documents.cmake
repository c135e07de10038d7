# Compiles and runs the programs and commands of the documents as they are printed.

# Writes the text between the first BEGIN and the next END of a file to OUTPUT, and again when the file changes. Each
# further argument is a prefix that is removed from every line.
function(clnorm_extract file begin end output)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(FIND "${text}" "${begin}" start)
    if(start EQUAL -1)
        message(FATAL_ERROR "${file}: expected a line \"${begin}\"")
    endif()
    string(LENGTH "${begin}" length)
    math(EXPR start "${start} + ${length}")
    string(SUBSTRING "${text}" ${start} -1 text)
    string(FIND "${text}" "${end}" length)
    if(length EQUAL -1)
        message(FATAL_ERROR "${file}: expected a line \"${end}\" after \"${begin}\"")
    endif()
    string(SUBSTRING "${text}" 0 ${length} text)
    foreach(prefix IN LISTS ARGN)
        string(REPLACE "\n${prefix}" "\n" text "\n${text}")
    endforeach()
    file(CONFIGURE OUTPUT "${output}" CONTENT "${text}" @ONLY)
endfunction()

set(shown "${CMAKE_CURRENT_BINARY_DIR}/shown")
clnorm_extract("${PROJECT_SOURCE_DIR}/README.md" "```c\n" "```\n" "${shown}/readme.h")
clnorm_test(test_readme)
target_include_directories(test_readme PRIVATE "${shown}")

# The program in clnorm.h is a comment: lines of " *" and 5 spaces, or of " *" alone.
clnorm_extract("${PROJECT_SOURCE_DIR}/include/clnorm/clnorm.h" "in place:\n *\n" " * The manual" "${shown}/header_program.c"
    " *     " " *")
add_executable(header_program "${shown}/header_program.c")
target_link_libraries(header_program PRIVATE clnorm::clnorm)
clnorm_add_test(header_program header_program)
set_tests_properties(header_program PROPERTIES LABELS quick
    PASS_REGULAR_EXPRESSION "^0.3651 0.7303 1.0954 1.4606\n-1.4142 0.0000 0.0000 1.4142\n$")

if(clnorm_has_tool)
    clnorm_add_test(readme_commands "${CMAKE_CURRENT_SOURCE_DIR}/readme_commands.sh" $<TARGET_FILE_DIR:clnorm_program>)
endif()

# README's table of devices equals docs/tested.json.
find_program(CLNORM_PROGRAM_python3 python3)
if(CLNORM_PROGRAM_python3)
    clnorm_add_test(tested_devices "${CLNORM_PROGRAM_python3}" "${PROJECT_SOURCE_DIR}/tools/tested.py" compare)
else()
    message(STATUS "No python3, no test tested_devices")
endif()

add_subdirectory("${PROJECT_SOURCE_DIR}/examples" "${PROJECT_BINARY_DIR}/examples")
