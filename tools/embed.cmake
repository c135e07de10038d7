# Makes the C file that embeds one kernel family: cmake -DROOT=cl -DINPUT=ROOM/NAME.cl -DOUTPUT=NAME.c -P embed.cmake
#
# A line #include "ROOM/x.h" is replaced by that file's text; ROOM is a folder below ROOT. A file is included once.
# #line directives make a driver's messages name the original file and line.

cmake_minimum_required(VERSION 3.20)
include("${CMAKE_CURRENT_LIST_DIR}/c_literal.cmake")

get_filename_component(file_name "${INPUT}" NAME)
get_filename_component(family "${INPUT}" NAME_WE)

# Appends the expansion of a file to the variable `expanded`. No list holds kernel text, which has ; [ ] and \ in it.
function(expand name)
    set_property(GLOBAL APPEND PROPERTY included "${name}")
    file(READ "${ROOT}/${name}" text)
    string(APPEND expanded "#line 1 \"${name}\"\n")
    set(line 1)
    while(TRUE)
        if(NOT "\n${text}" MATCHES "\n([ \t]*#[ \t]*include[ \t]+\"([^\"\n]+)\"[^\n]*)")
            break()
        endif()
        set(directive "${CMAKE_MATCH_1}")
        set(header "${CMAKE_MATCH_2}")
        string(FIND "\n${text}" "\n${directive}" head_length)
        string(SUBSTRING "${text}" 0 ${head_length} head)
        string(LENGTH "${directive}" directive_length)
        math(EXPR tail_start "${head_length} + ${directive_length}")
        string(SUBSTRING "${text}" ${tail_start} -1 text)
        string(REGEX MATCHALL "\n" newlines "${head}")
        list(LENGTH newlines head_lines)
        math(EXPR line "${line} + ${head_lines}")

        string(APPEND expanded "${head}")
        get_property(included GLOBAL PROPERTY included)
        if(NOT header IN_LIST included)
            expand("${header}")
            string(APPEND expanded "\n#line ${line} \"${name}\"\n")
        endif()
    endwhile()
    set(expanded "${expanded}${text}" PARENT_SCOPE)
endfunction()

set(expanded "")
expand("${INPUT}")

string(LENGTH "${expanded}" length)
string(SHA256 digest "${expanded}")
string(SUBSTRING "${digest}" 0 16 digest)
c_literal(expanded)
file(WRITE "${OUTPUT}" "/* Made from cl/${INPUT} by tools/embed.cmake. */
#include \"program/source.h\"

static const char text[] =
    ${expanded};

const struct cln_source cln_source_${family} = {\"${file_name}\", text, ${length}, UINT64_C(0x${digest})};
")
