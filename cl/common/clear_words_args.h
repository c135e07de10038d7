/* The arguments of the kernel that clears words: see cl/common/arguments.h. work: words. */
#ifndef CLEAR_WORDS_ARGS_H
#define CLEAR_WORDS_ARGS_H

#define CLEAR_WORDS_ARGS(USE) USE(VECTOR, 1, global uint *, words)

#endif
