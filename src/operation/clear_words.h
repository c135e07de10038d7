/* The kernel that clears words of the workspace: see cl/common/clear_words.h. */
#ifndef CLN_CLEAR_WORDS_H
#define CLN_CLEAR_WORDS_H

#include "plan/stage.h"

/* Adds the kernel. source: one that has it; words: a part of the workspace. */
clnorm_status cln_add_clear_words(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_source *source,
                                  struct cln_binding words);

#endif
