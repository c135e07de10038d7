/* Options of the command line that the library's operation records define. */
#ifndef CHOICE_H
#define CHOICE_H

#include <popt.h>

#include "fault.h"
#include "operation/operations.h"

#define ANY(name) ANY_##name,
#define ROW(name) ROW_##name,
#define NONE(name)
enum { CLN_OPERATION_LIST(ANY, ANY) ANY_OPERATIONS };
enum { CLN_OPERATION_LIST(ROW, NONE) ROW_OPERATIONS }; /* those of ROWS */
enum { CHOICES = ANY_OPERATIONS * CLN_CHOICES };       /* at most */
#undef ANY
#undef ROW
#undef NONE

/* The word given for each option, by the option's index; NULL: none. */
struct choices {
    char *word[CHOICES];
};

/* The option of an index; NULL: the index is one past the last. Operations share an option of the same name. */
const struct cln_enum_option *choice_at(int i);

/* The index of an option, which must exist. */
int choice_index(const char *option);

/* The option of this name that an operation has; NULL: none. */
const struct cln_enum_option *choice_of(const struct cln_operation *record, const char *option);

/* The option's value in an initial descriptor. */
uint32_t choice_initial(const struct cln_operation *record, const struct cln_enum_option *choice);

/* Writes the rows of all options and the end of the table: at most CHOICES + 1 rows. */
void choices_add(struct poptOption *rows, struct choices *choices);

/* Writes the given words' values into the descriptor; other fields are left alone. */
bool choices_read(const struct cln_operation *record, const struct choices *choices, void *desc, struct fault *fault);

#endif
