/* Suggests a name for a misspelled word. */
#ifndef CLOSEST_H
#define CLOSEST_H

#include <stdbool.h>
#include <stddef.h>

enum { CLOSEST_TEXT = 1000 };

/* The closest to a word of the names that were offered. */
struct closest {
    const char *word;
    const char *name; /* NULL: none is close */
    size_t distance;
    char offered[CLOSEST_TEXT - 32]; /* all names, with commas between them; names that do not fit are left out */
};

/* The number of characters to insert, remove, replace or swap to turn one into the other, at most 2 where one is a part of
 * the other; among equals, the difference of their lengths. '-' equals '_', and case does not matter. */
size_t closest_distance(const char *word, const char *name);

struct closest closest_to(const char *word);
void closest_offer(struct closest *closest, const char *name);

/* "did you mean rms_norm?"; "expected one of layer_norm, rms_norm" where no name is close. Returns text. */
const char *closest_text(const struct closest *closest, char text[CLOSEST_TEXT]);

/* Whether a word of `length` characters is this name, where '-' may stand for '_'. */
bool closest_is(const char *word, size_t length, const char *name);

#endif
