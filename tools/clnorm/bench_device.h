/* Measures operations on the device, against a copy. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "bench_request.h"

bool bench_device(const struct bench_request *request, struct fault *fault);

#endif
