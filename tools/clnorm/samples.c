#include "samples.h"

#include <stdlib.h>
#include <time.h>

bool samples_add(struct samples *samples, double us, struct fault *fault) {
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity ? 2 * samples->capacity : 64;
        double *const grown = realloc(samples->us, capacity * sizeof *grown);
        if (!grown)
            return fault_set(fault, EXIT_FAILED, "out of memory for %zu samples", capacity);
        samples->us = grown;
        samples->capacity = capacity;
    }
    samples->us[samples->count++] = us;
    return true;
}

void samples_free(struct samples *samples) {
    free(samples->us);
    *samples = (struct samples){0};
}

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

double samples_median(struct samples *samples) {
    qsort(samples->us, samples->count, sizeof *samples->us, ascending);
    const size_t half = samples->count / 2;
    return samples->count % 2 ? samples->us[half] : (samples->us[half - 1] + samples->us[half]) / 2;
}

double samples_least(struct samples *samples) {
    qsort(samples->us, samples->count, sizeof *samples->us, ascending);
    return samples->us[0];
}

double clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}
