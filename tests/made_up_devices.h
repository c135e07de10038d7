/* Devices that no test machine has. */
#ifndef TEST_MADE_UP_DEVICES_H
#define TEST_MADE_UP_DEVICES_H

#include "clnorm/clnorm.h"

enum { MADE_UP_H200 = 0, MADE_UP_RTX_4090 = 2, MADE_UP_T4 = 4, MADE_UP_POCL = 13, MADE_UP_DEVICES = 17 };

/* A device with its published limits, as its OpenCL would report them. i: below MADE_UP_DEVICES. */
clnorm_device_info made_up_device(size_t i);

#endif
