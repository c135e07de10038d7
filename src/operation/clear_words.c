#include "operation/clear_words.h"

#include "base/arithmetic.h"
#include "common/clear_words_args.h"

clnorm_status cln_add_clear_words(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_source *source,
                                  struct cln_binding words) {
    enum { MOST_GROUPS = 1024 };
    static const struct cln_parameter parameters[] = CLN_PARAMETERS(CLEAR_WORDS_ARGS);
    const struct cln_kernel kernel = {source, "clear_words", parameters, false};
    const uint64_t items = spec->lanes * spec->segments, work = words.size / sizeof(cl_uint);
    const struct cln_argument arguments[] = {cln_bind("words", words), {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = &kernel,
        .spec = spec,
        .arguments = arguments,
        .work = work,
        .groups = (size_t)cln_smaller(cln_divide_up(work, items), MOST_GROUPS),
        .items = (size_t)items,
    };
    return cln_plan_add_stage(plan, &recipe);
}
