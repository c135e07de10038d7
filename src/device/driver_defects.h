/* Known defects of drivers that kernels cannot avoid, by name and version. */
#ifndef CLN_DRIVER_DEFECTS_H
#define CLN_DRIVER_DEFECTS_H

#include "clnorm/clnorm.h"

enum cln_defect {
    CLN_DEFECT_SMALL_SUBGROUPS,  /* sub-group reductions of work-groups of 1 or 2 work-items do not build */
    CLN_DEFECT_QUANTIZE,         /* quantize gives wrong codes */
    CLN_DEFECT_NARROW_TILES,     /* wrong codes of an RMS norm in tiles of codes, with vectors of 1 or 2 elements */
    CLN_DEFECT_CODES_BACKWARD,   /* wrong gradients of a norm whose x has 8 bits */
    CLN_DEFECT_DROPOUT_BACKWARD, /* wrong gradients of a norm with dropout and an activation */
    CLN_DEFECT_EARLY_WEIGHTS,    /* wrong gradients of a norm that loads weights early, in vectors of 1 or 2 elements */
    CLN_DEFECT_SHARED_CACHE,     /* a build fails where other processes build the same program at the same time */
    /* The compiler aborts the process: */
    CLN_DEFECT_IDLE_LANES,      /* where a lane has no whole vector of a segment; of some builds, the results are wrong */
    CLN_DEFECT_SHARED_SEGMENTS, /* on some of the norms' forward kernels where lanes share a segment */
    CLN_DEFECT_CODES_SEGMENTS,  /* on some with several segments and a y of 8 bits; others never end */
};

/* A sentence that describes the defect, where the device's driver is known to have it; else NULL. */
const char *cln_driver_defect(const clnorm_device_info *device, enum cln_defect defect);

/* Fails with CLNORM_UNSUPPORTED and that sentence if the device's driver has the defect. */
clnorm_status cln_refuse_defect(const clnorm_device_info *device, enum cln_defect defect);

#endif
