/* Comments of text files with a row of words a line. */
#ifndef CLN_COMMENT_H
#define CLN_COMMENT_H

#include <stddef.h>

/* The characters of a text before its comment, which '#' begins, and before the blanks in front of that or of the end.
 * length: of the text. */
static inline size_t cln_before_comment(const char *text, size_t length) {
    size_t end = 0;
    while (end < length && text[end] != '#')
        end++;
    while (end > 0 && text[end - 1] == ' ')
        end--;
    return end;
}

#endif
