/* The numbers behind the words in a build's macros, as in the enumerations of the public headers and of knobs.h. */
#ifndef ENUMS_H
#define ENUMS_H

#define LAYER_NORM 1
#define RMS_NORM 2
#define L2_NORM 3

#define GATE_SILU 1
#define GATE_SIGMOID 2

#define ACTIVATION_GELU 1
#define ACTIVATION_GELU_TANH 2
#define ACTIVATION_SILU 3
#define GELU_ERF 1
#define GELU_TANH 2

#define ROPE_NEOX 1
#define ROPE_INTERLEAVED 2

#define LAYOUT_FIRST 1
#define LAYOUT_LAST 2

#define KEEP_REGISTERS 1
#define KEEP_REREAD 2

#define REDUCE_TREE 1
#define REDUCE_SHUFFLE 2
#define REDUCE_SUBGROUP 3

#define STORES_STREAMING 2

#define SCALING_TENSOR 1
#define SCALING_ROW 2
#define SCALING_GROUP 3

#define WEIGHTS_EARLY 2
#define WEIGHTS_KEPT 3

#define ISA_PTX 2

#define PREFETCH_NEXT 2

#define ROW_SPLIT_TWO_PASSES 1
#define ROW_SPLIT_EXCHANGE 2
#define ROW_SPLIT_NO_WAIT 3

#define ACCUMULATOR_REGISTERS 1
#define ACCUMULATOR_LOCAL 2
#define ACCUMULATOR_MEMORY 3
#define ACCUMULATOR_SPLIT 4
#define ACCUMULATOR_COLUMNS 5

/* Whether the device is known to be a CPU, also with streaming stores, for which accesses are aligned. */
#if ELEMENT_ALIGNED || defined(POCL_DEVICE_ADDRESS_BITS)
#define ON_CPU 1
#else
#define ON_CPU 0
#endif

#endif
