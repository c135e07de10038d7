# Makes the C file that embeds the database: cmake -DINPUT=FOLDER -DOUTPUT=NAME.c -P embed_database.cmake

cmake_minimum_required(VERSION 3.20)
include("${CMAKE_CURRENT_LIST_DIR}/c_literal.cmake")

file(GLOB files "${INPUT}/*.txt")
list(SORT files)
set(texts "")
set(rows "")
set(index 0)
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" text)
    c_literal(text)
    string(APPEND texts "static const char text_${index}[] =\n    ${text};\n\n")
    string(APPEND rows "    {\"${name}\", text_${index}},\n")
    math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made from src/config/database by tools/embed_database.cmake. */
#include \"config/database.h\"

${texts}const struct cln_database_file cln_database_files[] = {
${rows}    {NULL, NULL},
};
")
