#include "device/driver_defects.h"

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

static const struct {
    enum cln_defect defect;
    clnorm_platform_family family;
    unsigned first, last; /* versions of the driver: 100 · major + minor */
    const char *sentence;
} defects[] = {
    {CLN_DEFECT_SMALL_SUBGROUPS, CLNORM_PLATFORM_POCL, 600, 600,
     "PoCL 6.0 does not link sub-group reductions of 1 or 2 work-items"},
    {CLN_DEFECT_QUANTIZE, CLNORM_PLATFORM_MESA, 2203, 2203, "rusticl 22.3 computes quantize wrong"},
    {CLN_DEFECT_NARROW_TILES, CLNORM_PLATFORM_MESA, 2203, 2203,
     "rusticl 22.3 computes an RMS norm from scales of groups to one measured scale wrong in vectors of 1 or 2 columns"},
    {CLN_DEFECT_CODES_BACKWARD, CLNORM_PLATFORM_MESA, 2203, 2203,
     "rusticl 22.3 computes a norm's backward of an 8-bit x wrong"},
    {CLN_DEFECT_DROPOUT_BACKWARD, CLNORM_PLATFORM_MESA, 2203, 2203,
     "rusticl 22.3 computes a norm's backward with dropout and an activation wrong"},
    {CLN_DEFECT_EARLY_WEIGHTS, CLNORM_PLATFORM_MESA, 2203, 2203,
     "rusticl 22.3 computes a norm's backward with early weights wrong in vectors of 1 or 2 columns"},
    {CLN_DEFECT_IDLE_LANES, CLNORM_PLATFORM_POCL, 600, 600,
     "PoCL 6.0 aborts or computes wrong where a lane has no whole vector of a segment"},
    {CLN_DEFECT_SHARED_SEGMENTS, CLNORM_PLATFORM_POCL, 600, 600,
     "PoCL 6.0 aborts on some norms whose lanes share a segment"},
    {CLN_DEFECT_CODES_SEGMENTS, CLNORM_PLATFORM_POCL, 600, 600,
     "PoCL 6.0 aborts on some norms with a y of 8 bits and several segments, and hangs on others"},
    {CLN_DEFECT_SHARED_CACHE, CLNORM_PLATFORM_POCL, 1, 599,
     "PoCL before 6.0 removes files of its cache that another process is about to read"},
};

/* 600 for "6.0+debian", 2500 for "25.0.7-2"; 0 for a text that does not begin with a version. */
static unsigned version_of(const char *driver) {
    unsigned major = 0, minor = 0;
    return sscanf(driver, "%6u.%2u", &major, &minor) == 2 ? 100 * major + minor : 0;
}

const char *cln_driver_defect(const clnorm_device_info *device, enum cln_defect defect) {
    const unsigned version = version_of(device->driver);
    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++)
        if (defects[i].defect == defect && defects[i].family == device->family && version >= defects[i].first &&
            version <= defects[i].last)
            return defects[i].sentence;
    return NULL;
}

clnorm_status cln_refuse_defect(const clnorm_device_info *device, enum cln_defect defect) {
    const char *const sentence = cln_driver_defect(device, defect);
    return sentence ? cln_fail(CLNORM_UNSUPPORTED, "device %s: %s", device->name, sentence) : CLNORM_SUCCESS;
}
