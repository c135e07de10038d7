/* Builds one program, from source or from the cache on disk. */
#ifndef CLN_PROGRAM_BUILD_H
#define CLN_PROGRAM_BUILD_H

#include "clnorm/clnorm.h"
#include "program/source.h"

/* Builds from source. The driver's build log goes to the context's log. When the build fails, the head of that log is
 * part of the error detail. */
clnorm_status cln_program_build(const clnorm_context *context, const struct cln_source *source, const char *options,
                                cl_program *program);

/* Whether this context keeps programs on disk. */
bool cln_program_on_disk(const clnorm_context *context);

/* Builds from the entry on disk; NULL when there is none or the driver refuses it. A failure leaves no error detail. */
cl_program cln_program_load(const clnorm_context *context, const struct cln_source *source, const char *options);

/* Stores a built program on disk. A failure is ignored, as the program is in memory. */
void cln_program_keep(const clnorm_context *context, const struct cln_source *source, const char *options,
                      cl_program program);

#endif
