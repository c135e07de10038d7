/* Measures the host: an enqueue against its bare OpenCL calls, and plan creation without and with caches. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include "bench_request.h"

bool bench_host(const struct bench_request *request, struct fault *fault);

#endif
