/* What a word that names nothing was likely to mean. */
#ifndef CLOSEST_H
#define CLOSEST_H

#include <stdbool.h>
#include <stddef.h>

/* The name that is closest to a word, of those that were offered. */
struct closest {
    const char *word;
    const char *name; /* NULL: none is close */
    size_t distance;
};

/* By how many characters there are to insert, remove, replace or swap until one is the other, at most 2 where one is a part
 * of the other; then by their lengths. '-' is '_', and capitals are small. */
size_t closest_distance(const char *word, const char *name);

struct closest closest_to(const char *word);
void closest_offer(struct closest *closest, const char *name);

enum { CLOSEST_TEXT = 160 };

/* "did you mean rms_norm?"; "" where nothing is close. Returns text. */
const char *closest_text(const struct closest *closest, char text[CLOSEST_TEXT]);

/* Whether a word is this name, '-' standing for '_' too. */
bool closest_is(const char *word, size_t length, const char *name);

#endif
