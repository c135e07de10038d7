/* The knobs of a config, which decide how a kernel runs. A clnorm_config holds the same words as struct cln_config; callers
 * see it as text only. */
#ifndef CLN_KNOBS_H
#define CLN_KNOBS_H

#include "clnorm/clnorm.h"

/* 0 is automatic in every knob; a chosen config sets all knobs of its operation. knobs.c has their ranges. */
struct cln_config {
    uint32_t vec;
    uint32_t lanes;
    uint32_t segments;
    uint32_t iterations;
    uint32_t keep;
    uint32_t unroll;
    uint32_t reduce;
    uint32_t stores;
    uint32_t weights;
    uint32_t isa;
    uint32_t tile;
    uint32_t accumulator;
    uint32_t pipeline;
    uint32_t chunks;
    uint32_t row_split;
    uint32_t groups_per_cu;
    uint32_t run_length;
    uint32_t prefetch;
    uint32_t local_vectors;
};

enum { CLN_KNOBS = sizeof(struct cln_config) / sizeof(uint32_t) };

/* Where a segment is kept while its statistics are computed. */
enum cln_keep {
    CLN_KEEP_REGISTERS = 1, /* read once, held by its lanes */
    CLN_KEEP_REREAD,        /* read again, usually from a cache */
    CLN_KEEP_LOCAL          /* the norms' forward: the part that fits is in local memory, the rest is read again */
};

enum cln_reduce {
    CLN_REDUCE_TREE = 1, /* local memory and barriers: any device */
    CLN_REDUCE_SHUFFLE,  /* NVIDIA's shfl within 32 lanes, local memory between them */
    CLN_REDUCE_SUBGROUP  /* sub_group_reduce_add, local memory between sub-groups */
};

enum cln_stores {
    CLN_STORES_CACHED = 1,
    CLN_STORES_STREAMING /* past the caches, for outputs larger than these */
};

enum cln_weights {
    CLN_WEIGHTS_LATE = 1, /* read when they are needed */
    CLN_WEIGHTS_EARLY,    /* read together with x: more registers, less latency */
    CLN_WEIGHTS_KEPT      /* read late, with a hint that caches keep them; for segments that are read again */
};

enum cln_isa {
    CLN_ISA_PORTABLE = 1, /* OpenCL C 1.2, but for sub-groups and memory fences */
    CLN_ISA_PTX           /* inline PTX, NVIDIA compute capability 8.0 and up */
};

/* Backward: where dweight and dbias are added up. */
enum cln_accumulator {
    CLN_ACCUMULATOR_REGISTERS = 1, /* each work-item sums its columns over all its rows */
    CLN_ACCUMULATOR_LOCAL,         /* local memory */
    CLN_ACCUMULATOR_MEMORY,        /* the work-group's own slot of the workspace, cached; not when locked */
    CLN_ACCUMULATOR_SPLIT,         /* dweight in registers, dbias in local memory */
    /* For few rows: separate work-groups sum some columns over all rows and read x, dy and z again, while the others write
     * dx. This takes no slots and one kernel less. Where dx or dz overlaps an input they run before the others. Not when
     * locked. */
    CLN_ACCUMULATOR_COLUMNS
};

/* How work-groups that each have a tile of a segment, or a chunk of a row of softmax or of a group, get the sums of the
 * whole. */
enum cln_row_split {
    CLN_ROW_SPLIT_TWO_PASSES = 1, /* a first kernel computes them, in chunks: x and dy are read twice */
    CLN_ROW_SPLIT_EXCHANGE,       /* they exchange the sums of tiles or chunks, while they go through them together */
    CLN_ROW_SPLIT_NO_WAIT         /* the same with a wait of zero: sums that have not arrived are computed again */
};

/* What the norms' backward prefetches into the L2 cache: with CLN_ISA_PTX, and on CPUs whose compilers have a prefetch. On
 * other devices it has no effect. A prefetched row must fit in the cache until it is read. */
enum cln_prefetch {
    CLN_PREFETCH_NONE = 1, /* nothing, except the next row on CPUs that read a row again */
    CLN_PREFETCH_NEXT      /* the row after those in registers */
};

/* Kinds of operations with the same knobs. */
enum cln_knob_users {
    CLN_KNOBS_FORWARD = 1, /* of the norms */
    CLN_KNOBS_SOFTMAX = 2,
    CLN_KNOBS_QUANTIZE = 4,
    CLN_KNOBS_BACKWARD = 8,  /* of the norms */
    CLN_KNOBS_ELEMENTS = 16, /* elementwise */
    CLN_KNOBS_GROUP = 32,    /* group norm, forward and backward */
    CLN_KNOBS_SLICES = 64    /* norms of slices, except norm_backward_apply, which has those of the backward */
};

/* The range of a knob. */
struct cln_knob {
    const char *name;
    const char *values[6]; /* words for an enumeration's values, from 1 on; all NULL: a number */
    uint32_t least, most;  /* of a number */
    bool power_of_two;
    unsigned users; /* cln_knob_users */
    const char *costs;
};

/* In the order of struct cln_config's members. */
extern const struct cln_knob cln_knobs[CLN_KNOBS];

/* The value of knob i. */
uint32_t cln_knob_value(const struct cln_config *config, int i);
void cln_knob_set(struct cln_config *config, int i, uint32_t value);

/* Whether a value other than 0 is in the knob's range; otherwise writes what was expected. */
enum { CLN_KNOB_EXPECTED = 64 };
bool cln_knob_allows(const struct cln_knob *knob, uint32_t value, char expected[CLN_KNOB_EXPECTED]);

/* Converts between the two forms. A caller's config with words other than knobs is refused. */
clnorm_status cln_config_open(const clnorm_config *config, struct cln_config *knobs);
clnorm_config cln_config_close(const struct cln_config *knobs);

/* Like clnorm_config_parse. */
clnorm_status cln_config_parse(const char *text, struct cln_config *config);

/* Refuses knobs that the operations do not have, and values outside their range. 0 is accepted in every knob. */
clnorm_status cln_knobs_check(const struct cln_config *config, enum cln_knob_users users);

/* Refuses a knob's value: "desc.config.keep is local: expected …". name: of a member. */
clnorm_status cln_config_refuse(const char *name, uint32_t value, const char *expected);

#endif
