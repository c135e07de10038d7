#include "operation/launch.h"

#include "base/arithmetic.h"

void cln_launch_spec(const clnorm_device_info *device, const struct cln_config *config, struct cln_spec *spec) {
    spec->vec = config->vec;
    spec->lanes = config->lanes;
    spec->segments = config->segments;
    spec->keep = config->keep;
    spec->unroll = config->unroll;
    spec->reduce = config->reduce;
    spec->stores = config->stores;
    spec->weights = config->weights;
    spec->isa = config->isa;
    spec->tile = config->tile;
    spec->accumulator = config->accumulator;
    spec->pipeline = config->pipeline;
    spec->chunks = cln_larger(config->chunks, 1);
    spec->prefetch = config->prefetch;
    spec->element_aligned = cln_config_element_aligned(device, config);
    const bool newest =
        config->reduce == CLN_REDUCE_SUBGROUP || (cln_exchanges(config) && cln_fences_by_language(device, config));
    spec->opencl_c = newest ? device->opencl_c_version : 120;
}

uint64_t cln_launch_iterations(uint64_t wish, uint64_t blocks, uint64_t most_groups) {
    return cln_smaller(cln_larger(wish, cln_divide_up(blocks, most_groups)), cln_larger(blocks, 1));
}

struct cln_launch cln_launch_within(const struct cln_config *config, uint64_t segments, uint64_t most_groups) {
    const uint64_t blocks = cln_divide_up(segments, config->segments);
    const uint64_t iterations = cln_launch_iterations(config->iterations, blocks, most_groups);
    return (struct cln_launch){iterations, (size_t)cln_divide_up(blocks, iterations),
                               (size_t)config->lanes * config->segments};
}

struct cln_launch cln_launch_of(const struct cln_config *config, uint64_t segments) {
    return cln_launch_within(config, segments, CLN_MOST_GROUPS);
}
