/* Builds one program, from source or from what is kept on disk. */
#ifndef CLN_PROGRAM_BUILD_H
#define CLN_PROGRAM_BUILD_H

#include "clnorm/clnorm.h"
#include "program/source.h"

/* Builds from source. The driver's build log goes to the context's log, and when it fails its head to the detail. */
clnorm_status cln_program_build(const clnorm_context *context, const struct cln_source *source, const char *options,
                                cl_program *program);

/* Whether this context keeps programs on disk. */
bool cln_program_on_disk(const clnorm_context *context);

/* Builds from the entry on disk; NULL when there is none that the driver takes. Fails without leaving a detail. */
cl_program cln_program_load(const clnorm_context *context, const struct cln_source *source, const char *options);

/* Keeps a built program on disk, if that goes well. */
void cln_program_keep(const clnorm_context *context, const struct cln_source *source, const char *options,
                      cl_program program);

#endif
