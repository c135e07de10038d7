/* Configs: how a kernel runs on its device. Most callers leave all of it to the library. */
#ifndef CLNORM_CONFIG_H
#define CLNORM_CONFIG_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a kernel runs on its device. In a descriptor: a wish, 0 meaning "you choose"; a wish that the device or the shape
 * cannot honour is refused, never bent. From clnorm_plan_config: what was chosen. Results of the same config are the same
 * bits, run after run and for any number of rows. */
typedef struct clnorm_config {
    uint32_t vec;       /* elements per memory access: 1, 2, 4, 8, 16 */
    uint32_t lanes;     /* work-items that share one segment: a power of two */
    uint32_t segments;  /* segments that a work-group holds at once: a power of two */
    uint32_t rounds;    /* how often a work-group goes on to its next segments, at least; backward: to the next rows, before
                           it goes on behind those of all the other work-groups */
    uint32_t keep;      /* a clnorm_keep */
    uint32_t unroll;    /* re-read: vectors that a lane takes in at once, 1 to 16 */
    uint32_t reduce;    /* a clnorm_reduce: how lanes add up */
    uint32_t stores;    /* a clnorm_stores */
    uint32_t weights;   /* a clnorm_weights: keep registers: when weight and bias are read */
    uint32_t isa;       /* a clnorm_isa: instructions beyond OpenCL C 1.2 */
    uint32_t tile;      /* backward: columns of a segment that a work-group works on; group_size at most */
    uint32_t gather;    /* backward: a clnorm_gather: where dweight and dbias are added up */
    uint32_t fetch;     /* backward: a clnorm_fetch: keep registers: when a row is fetched */
    uint32_t chunks;    /* pieces of a segment, a work-group each: of the norms' forward and of softmax, two kernels instead
                           of one where they are more than 1; of the norms' backward, sums over a segment in tiles */
    uint32_t sums;      /* backward: a clnorm_sums: of a segment in tiles */
    uint32_t walkers;   /* backward: work-groups for each compute unit, at most, about */
    uint32_t prefetch;  /* norms: a clnorm_prefetch: what the L2 cache is asked for beforehand */
    uint32_t registers; /* the norms' forward on NVIDIA: of a work-item at most; 0: as its compiler likes */
    uint32_t shelved;   /* keep local: vectors of each lane that are, at most; 0: as many as there is room for */
    uint32_t asked;     /* the norms' forward, prefetch next: vectors of each lane that are, at most; 0: all */
} clnorm_config;

/* The config of which everything is chosen. */
static inline clnorm_config clnorm_config_automatic(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    return automatic;
}

/* Configs as words, "vec=8,lanes=128,keep=registers": every knob that is not 0, named as its field is, with a number or the
 * end of an enumerator's name in small letters. Writes at most capacity bytes and returns the whole text's length, as
 * snprintf does. */
CLNORM_API size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity);

/* Reads such words; knobs that are not named are 0. "" is a config of which everything is chosen. */
CLNORM_API clnorm_status clnorm_config_parse(const char *text, clnorm_config *config);

/* Where a segment is while its statistics are taken. */
typedef enum clnorm_keep {
    CLNORM_KEEP_REGISTERS = 1, /* read once, held by its lanes */
    CLNORM_KEEP_REREAD,        /* read again, from a cache as a rule */
    CLNORM_KEEP_LOCAL          /* the norms' forward: in local memory, as far as there is room, and else read again */
} clnorm_keep;

typedef enum clnorm_reduce {
    CLNORM_REDUCE_TREE = 1, /* local memory and barriers: any device */
    CLNORM_REDUCE_SHUFFLE,  /* NVIDIA's shfl within 32 lanes, local memory between them */
    CLNORM_REDUCE_SUBGROUP  /* sub_group_reduce_add, local memory between sub-groups */
} clnorm_reduce;

typedef enum clnorm_stores {
    CLNORM_STORES_CACHED = 1,
    CLNORM_STORES_STREAMING /* past the caches, for outputs larger than they are */
} clnorm_stores;

typedef enum clnorm_weights {
    CLNORM_WEIGHTS_LATE = 1, /* when they are needed */
    CLNORM_WEIGHTS_EARLY,    /* keep registers: together with x, which costs registers and saves latency */
    CLNORM_WEIGHTS_KEPT      /* keep re-read: late, and caches are asked to keep them */
} clnorm_weights;

typedef enum clnorm_isa {
    CLNORM_ISA_PORTABLE = 1, /* OpenCL C 1.2 alone */
    CLNORM_ISA_PTX           /* inline PTX conversions, NVIDIA compute capability 8.0 and up */
} clnorm_isa;

typedef enum clnorm_gather {
    CLNORM_GATHER_REGISTERS = 1, /* by each work-item for its columns, over all the rows that it sees */
    CLNORM_GATHER_LOCAL,         /* in local memory */
    CLNORM_GATHER_MEMORY,        /* in the work-group's own slot of the workspace, which caches hold; not when locked */
    CLNORM_GATHER_SPLIT,         /* dweight as in registers, dbias in local memory */
    /* For few rows: by work-groups of their own, which have some columns of all rows each and read x, dy and z again, while
     * the others write dx: no slots, and one kernel less. Where dx or dz lies over an input they run before the others. Not
     * when locked. */
    CLNORM_GATHER_COLUMNS
} clnorm_gather;

/* How a work-group that has a tile of a segment comes to the sums of all of it. */
typedef enum clnorm_sums {
    CLNORM_SUMS_BEFORE = 1, /* a kernel before has taken them, in chunks: x and dy are read twice */
    /* From the work-groups of the other tiles, which go through the same rows at the same time and wait for each other. On
     * NVIDIA; at most 8 such launches may run on a device side by side, in as many queues: more of them could take up all
     * of it with work-groups that wait for others which find no room. */
    CLNORM_SUMS_EXCHANGED
} clnorm_sums;

typedef enum clnorm_fetch {
    CLNORM_FETCH_IN_TURN = 1, /* when the row before it is done */
    CLNORM_FETCH_AHEAD,       /* while the row before it is worked on, which costs registers and saves latency */
    CLNORM_FETCH_FAR          /* two rows before it is due; with exchanged sums, to hide the wait for these too */
} clnorm_fetch;

/* What the norms ask the L2 cache for before they read it, with CLNORM_ISA_PTX and, where compilers can, on CPUs; elsewhere
 * it makes no difference. What is asked for must find room in the cache until it is read. */
typedef enum clnorm_prefetch {
    CLNORM_PREFETCH_NONE = 1, /* nothing, but for what CPUs that read a row again ask for of the next one in any case */
    /* Backward: the row behind those that are in registers. Forward: what a compute unit that has one work-group does next,
     * which is the row as many rows further on as there are units or, with several rounds, the next row. */
    CLNORM_PREFETCH_NEXT
} clnorm_prefetch;

#ifdef __cplusplus
}
#endif

#endif
