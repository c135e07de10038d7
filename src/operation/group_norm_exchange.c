#include "operation/group_norm_exchange.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "config/group_parts.h"
#include "norm/group_norm_args.h"

enum { TICKET_WORDS = CLN_WORKSPACE_ALIGNMENT / sizeof(cl_uint) };

clnorm_status cln_group_norm_tickets(uint64_t *size, struct cln_binding *tickets) {
    return cln_group_norm_part(size, TICKET_WORDS, sizeof(cl_uint), tickets);
}

/* Adds the kernel that empties the words of tickets and parts. */
static clnorm_status add_clear(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_source *source,
                               struct cln_binding words) {
    enum { MOST_GROUPS = 1024 };
    static const struct cln_parameter parameters[] = CLN_PARAMETERS(GROUP_NORM_CLEAR_ARGS);
    const uint64_t items = spec->lanes * spec->segments, work = words.size / sizeof(cl_uint);
    const struct cln_argument arguments[] = {cln_bind("tickets", words), {0}};
    const struct cln_stage_recipe recipe = {
        .source = source,
        .kernel = "group_norm_clear",
        .spec = spec,
        .parameters = parameters,
        .arguments = arguments,
        .work = work,
        .groups = (size_t)cln_smaller(cln_divide_up(work, items), MOST_GROUPS),
        .items = (size_t)items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status cln_group_norm_add_exchange(clnorm_plan *plan, const struct cln_spec *spec,
                                          const struct cln_group_norm_kernel *kernel, struct cln_binding tickets,
                                          struct cln_binding parts) {
    enum { OWN = 4, MOST_ARGUMENTS = 8 };
    const clnorm_device_info *const device = &plan->context->device;
    struct cln_binding words = tickets;
    words.size = parts.offset + parts.size - tickets.offset;
    const uint64_t groups = cln_group_exchangers(device, &plan->work, &plan->config);
    struct cln_argument arguments[OWN + MOST_ARGUMENTS + 1] = {
        cln_integer("iterations", 1),
        cln_integer("ahead", cln_group_ahead(device, &plan->work, &plan->config)),
        cln_bind("tickets", tickets),
        cln_bind("parts", parts),
    };
    for (unsigned i = 0; i < MOST_ARGUMENTS && kernel->arguments[i].name; i++)
        arguments[OWN + i] = kernel->arguments[i];
    const struct cln_stage_recipe recipe = {
        .source = kernel->source,
        .kernel = kernel->name,
        .unaligned = !spec->element_aligned,
        .spec = spec,
        .parameters = kernel->parameters,
        .arguments = arguments,
        .work = kernel->work,
        .groups = (size_t)groups,
        .items = (size_t)(spec->lanes * spec->segments),
        .posters = (size_t)groups,
    };
    const clnorm_status status = add_clear(plan, spec, kernel->source, words);
    return status ? status : cln_plan_add_stage(plan, &recipe);
}
