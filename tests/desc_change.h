/* Tables of wrong descriptors: the field that each sets, and the words that the error message must contain. */
#ifndef TEST_DESC_CHANGE_H
#define TEST_DESC_CHANGE_H

#include <stddef.h>
#include <stdint.h>

enum change_kind { NOTHING, WIDE, ENUM, REAL, FLAG };

/* A field that is set to a value. */
struct change {
    enum change_kind kind;
    size_t offset;
    uint64_t number;
    double real;
};

void change_apply(const struct change *change, void *desc);

/* Checks that the last error message contains both parts. */
void assert_says(const char *first, const char *second);

#define HUGE_COUNT (UINT64_C(1) << 62)
#define HUGE_TEXT "4611686018427387904"

#endif
