/* From a source and its options to a built cl_program: from memory, else from disk, else by a build. */
#ifndef CLN_PROGRAM_H
#define CLN_PROGRAM_H

#include "clnorm/clnorm.h"
#include "program/source.h"

struct cln_program_store;

clnorm_status cln_program_store_create(struct cln_program_store **store);

/* NULL is allowed. */
void cln_program_store_destroy(struct cln_program_store *store);

/* The program of a source built with these options; the caller releases it with clReleaseProgram. Thread-safe: nothing
 * is compiled under a lock, and two threads that build the same program both get the one that was stored first. */
clnorm_status cln_program_get(clnorm_context *context, const struct cln_source *source, const char *options,
                              cl_program *program);

#endif
