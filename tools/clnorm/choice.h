/* Options of the command line that the records of the library's operations bring with them. */
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

/* What was said of each option, by its index; NULL: nothing. */
struct choices {
    char *word[CHOICES];
};

/* An option by its index; operations that have one of the same name share it. NULL: it is one past the last. */
const struct cln_enum_option *choice_at(int i);

/* The index of an option that there is. */
int choice_index(const char *option);

/* The option of a name, of this operation; NULL: it has none. */
const struct cln_enum_option *choice_of(const struct cln_operation *record, const char *option);

/* The value that a descriptor starts from. */
uint32_t choice_initial(const struct cln_operation *record, const struct cln_enum_option *choice);

/* Adds the options to a table, and its end: at most CHOICES + 1 rows. */
void choices_add(struct poptOption *rows, struct choices *choices);

/* Writes into the descriptor what was said; its other fields are as they were. */
bool choices_read(const struct cln_operation *record, const struct choices *choices, void *desc, struct fault *fault);

#endif
