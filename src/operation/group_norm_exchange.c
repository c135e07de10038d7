#include "operation/group_norm_exchange.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "common/cache_line.h"
#include "common/exchange_sizes.h"
#include "config/group_parts.h"
#include "config/group_registers.h"
#include "norm/group_norm_args.h"
#include "operation/clear_words.h"

clnorm_status cln_group_norm_tickets(clnorm_plan *plan, struct cln_binding *tickets) {
    return cln_plan_add_part(plan, CACHE_LINE_WORDS, sizeof(cl_uint), tickets);
}

/* Adds a launch whose work-groups exchange sums. arguments: all of the kernel. */
static clnorm_status add_launch(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm_stage *stage,
                                const struct cln_argument *arguments) {
    const uint64_t groups = cln_group_exchangers(&plan->context->device, &plan->work, &plan->config);
    const struct cln_stage_recipe recipe = {
        .kernel = stage->kernel,
        .spec = spec,
        .arguments = arguments,
        .work = stage->work,
        .groups = (size_t)groups,
        .items = (size_t)(spec->lanes * spec->segments),
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status cln_group_norm_add_exchange(clnorm_plan *plan, const struct cln_spec *spec,
                                          const struct cln_group_norm_stage *stage, struct cln_binding tickets,
                                          struct cln_binding parts) {
    struct cln_binding words = tickets;
    words.size = parts.offset + parts.size - tickets.offset;
    const struct cln_argument arguments[] = {
        cln_integer("iterations", 1),
        cln_integer("ahead", cln_group_ahead(&plan->context->device, &plan->work, &plan->config)),
        cln_bind("tickets", tickets),
        cln_bind("parts", parts),
        cln_include(stage->arguments),
        {0},
    };
    const clnorm_status status = cln_add_clear_words(plan, spec, stage->kernel->source, words);
    return status ? status : add_launch(plan, spec, stage, arguments);
}

clnorm_status cln_group_norm_words(clnorm_plan *plan, const struct cln_spec *spec, uint64_t pieces, bool clears,
                                   struct cln_binding *words) {
    const uint64_t pairs = cln_product(cln_larger(spec->span, 1), pieces);
    return clears ? cln_plan_add_part(plan, cln_sum(CACHE_LINE_WORDS, cln_product(2, pairs)), sizeof(cl_uint), words)
                  : cln_plan_add_part(plan, cln_sum(HEADER_MESSAGES, pairs), sizeof(cl_uint4), words);
}

clnorm_status cln_group_norm_add_pieces(clnorm_plan *plan, const struct cln_spec *spec,
                                        const struct cln_group_norm_stage *stage, struct cln_binding words) {
    const struct cln_argument arguments[] = {
        cln_integer("iterations", 1), cln_bind("words", words), cln_include(stage->arguments), {0}};
    struct cln_spec bounded = *spec;
    bounded.most_registers = cln_group_most_registers(&plan->work, &plan->config);
    const bool clears = words.element == sizeof(cl_uint);
    const clnorm_status status =
        clears ? cln_add_clear_words(plan, &bounded, stage->kernel->source, words) : CLNORM_SUCCESS;
    return status ? status : add_launch(plan, &bounded, stage, arguments);
}
