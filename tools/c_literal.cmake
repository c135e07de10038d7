# c_literal(VARIABLE) makes the text in VARIABLE a C string literal of the same bytes, a line of it for each line of the text.
# Compilers read it thirty times as fast as a list of bytes. ? is escaped because C11 has trigraphs.
function(c_literal variable)
    set(text "${${variable}}")
    foreach(character IN ITEMS "\\" "\"" "?")
        string(REPLACE "${character}" "\\${character}" text "${text}")
    endforeach()
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(${variable} "\"${text}\"" PARENT_SCOPE)
endfunction()
