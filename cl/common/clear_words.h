/* The kernel that sets words of the workspace to 0, before a kernel whose work-groups lock them or post messages there. */
#ifndef CLEAR_WORDS_H
#define CLEAR_WORDS_H

#include "common/arguments.h"
#include "common/clear_words_args.h"
#include "common/lanes.h"

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void clear_words(PARAMETERS(CLEAR_WORDS_ARGS)) {
    for (ulong i = get_global_id(0); i < work; i += get_global_size(0))
        words[words_at + i] = 0;
}

#endif
