/* Writes the sample that the quick start normalises. Its bytes are the same on every machine.
 *
 *   make_sample tests/data/sample.safetensors
 *
 * x is bf16 [4, 16, 384], similar to activations of a small transformer: the rows of a sequence share an offset, and one
 * column in 64 is ten times as large as the others. weight and bias are f32 [384]. */
#include <stdio.h>
#include <stdlib.h>

#include "tensor_write.h"

enum { SEQUENCES = 4, POSITIONS = 16, COLS = 384, ROWS = SEQUENCES * POSITIONS };

/* splitmix64, as a number from -1 to 1 of 24 bits */
static double random_number(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 40) * 0x1p-23 - 1;
}

/* About normally distributed. The sum of three is exact, so that the order of the calls does not matter. */
static double bell(uint64_t *state) {
    return random_number(state) + random_number(state) + random_number(state);
}

static bool make_sample(const char *path, struct fault *fault) {
    struct tensor x = {
        .name = "x", .element = element_by_dtype(CLNORM_BF16), .rank = 3, .shape = {SEQUENCES, POSITIONS, COLS}};
    struct tensor weight = {.name = "weight", .element = element_by_dtype(CLNORM_F32), .rank = 1, .shape = {COLS}};
    struct tensor bias = {.name = "bias", .element = element_by_dtype(CLNORM_F32), .rank = 1, .shape = {COLS}};
    static unsigned char x_bytes[ROWS * COLS * 2], weight_bytes[COLS * 4], bias_bytes[COLS * 4];
    if (!tensor_measure(&x) || !tensor_measure(&weight) || !tensor_measure(&bias))
        return fault_set(fault, EXIT_FAILED, "the sample is too large");
    uint64_t state = 1;
    for (uint64_t i = 0; i < x.count; i++) {
        const uint64_t sequence = i / COLS / POSITIONS;
        const double offset = (double)sequence * 0.25 - 0.5;
        element_store(x.element, x_bytes, i, (offset + bell(&state)) * (i % 64 == 17 ? 10 : 1));
    }
    for (uint64_t i = 0; i < COLS; i++) {
        element_store(weight.element, weight_bytes, i, 1 + 0.25 * bell(&state));
        element_store(bias.element, bias_bytes, i, 0.125 * bell(&state));
    }
    x.data = x_bytes;
    weight.data = weight_bytes;
    bias.data = bias_bytes;
    const struct tensor *const tensors[] = {&x, &weight, &bias};
    return tensor_write(path, tensors, 3, fault);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "Usage: make_sample FILE.safetensors\n");
        return EXIT_REQUEST;
    }
    struct fault fault = {0};
    if (make_sample(argv[1], &fault))
        return EXIT_DONE;
    fprintf(stderr, "make_sample: %s\n", fault.text);
    return fault.code;
}
