#include "closest.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 256, UNIT = 1024 }; /* the length limit in characters; the distance of one changed character */

static int plain(char c) {
    return c == '-' ? '_' : tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance_of(const char *a, const char *b) {
    const size_t a_length = strlen(a);
    const size_t b_length = strlen(b);
    size_t rows[3][LONGEST + 1]; /* of the last three characters of a */
    if (a_length > LONGEST || b_length > LONGEST)
        return LONGEST;
    for (size_t k = 0; k <= b_length; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        const size_t *const before = rows[(i - 1) % 3];
        size_t *const row = rows[i % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            row[k] = least(least(before[k], row[k - 1]) + 1, before[k - 1] + (plain(a[i - 1]) != plain(b[k - 1])));
            if (i > 1 && k > 1 && plain(a[i - 1]) == plain(b[k - 2]) && plain(a[i - 2]) == plain(b[k - 1]))
                row[k] = least(row[k], rows[(i - 2) % 3][k - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

static bool has_part(const char *name, const char *word) {
    for (; *name; name++) {
        size_t i = 0;
        while (word[i] && plain(name[i]) == plain(word[i]))
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

size_t closest_distance(const char *word, const char *name) {
    const size_t word_length = strlen(word);
    const size_t name_length = strlen(name);
    const bool part = word_length < name_length ? word_length > 2 && has_part(name, word) : has_part(word, name);
    const size_t distance = distance_of(word, name);
    const size_t apart = word_length < name_length ? name_length - word_length : word_length - name_length;
    return (part ? least(distance, 2) : distance) * UNIT + least(apart, UNIT - 1);
}

struct closest closest_to(const char *word) {
    const size_t length = strlen(word);
    return (struct closest){.word = word,
                            .distance = UNIT * (length < 3   ? 1
                                                : length < 4 ? 2
                                                : length < 9 ? 3
                                                             : 1 + length / 3)};
}

void closest_offer(struct closest *closest, const char *name) {
    const size_t distance = closest_distance(closest->word, name);
    const size_t length = strlen(closest->offered);
    if (length + strlen(name) + 3 <= sizeof closest->offered)
        (void)snprintf(closest->offered + length, sizeof closest->offered - length, "%s%s", length ? ", " : "", name);
    if (distance < closest->distance) {
        closest->distance = distance;
        closest->name = name;
    }
}

const char *closest_text(const struct closest *closest, char text[CLOSEST_TEXT]) {
    if (closest->name)
        (void)snprintf(text, CLOSEST_TEXT, "did you mean %s?", closest->name);
    else
        (void)snprintf(text, CLOSEST_TEXT, "expected one of %s", closest->offered);
    return text;
}

bool closest_is(const char *word, size_t length, const char *name) {
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (word[i] != name[i] && !(word[i] == '-' && name[i] == '_'))
            return false;
    return true;
}
