#include "element.h"

#include <string.h>

#include "reference/format.h"

/* F4 and F6 pack several elements in a byte. */
static const struct element elements[] = {
    {"F64", "<f8", CLNORM_F64, 64},
    {"F32", "<f4", CLNORM_F32, 32},
    {"F16", "<f2", CLNORM_F16, 16},
    {"BF16", NULL, CLNORM_BF16, 16},
    {"F8_E4M3", NULL, CLNORM_F8_E4M3, 8},
    {"F8_E5M2", NULL, CLNORM_F8_E5M2, 8},
    {"F8_E8M0", NULL, CLNORM_DTYPE_NONE, 8},
    {"F8_E4M3FNUZ", NULL, CLNORM_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", NULL, CLNORM_DTYPE_NONE, 8},
    {"F6_E2M3", NULL, CLNORM_DTYPE_NONE, 6},
    {"F6_E3M2", NULL, CLNORM_DTYPE_NONE, 6},
    {"F4", NULL, CLNORM_DTYPE_NONE, 4},
    {"C64", "<c8", CLNORM_DTYPE_NONE, 64},
    {"I64", "<i8", CLNORM_DTYPE_NONE, 64},
    {"I32", "<i4", CLNORM_DTYPE_NONE, 32},
    {"I16", "<i2", CLNORM_DTYPE_NONE, 16},
    {"I8", "|i1", CLNORM_DTYPE_NONE, 8},
    {"U64", "<u8", CLNORM_DTYPE_NONE, 64},
    {"U32", "<u4", CLNORM_DTYPE_NONE, 32},
    {"U16", "<u2", CLNORM_DTYPE_NONE, 16},
    {"U8", "|u1", CLNORM_DTYPE_NONE, 8},
    {"BOOL", "|b1", CLNORM_DTYPE_NONE, 8},
};
enum { ELEMENTS = sizeof elements / sizeof *elements };

const struct element *element_by_name(const char *name) {
    for (int i = 0; i < ELEMENTS; i++)
        if (!strcmp(elements[i].name, name))
            return &elements[i];
    return NULL;
}

const struct element *element_by_npy(const char *descr) {
    for (int i = 0; i < ELEMENTS; i++)
        if (elements[i].npy && !strcmp(elements[i].npy, descr))
            return &elements[i];
    return NULL;
}

const struct element *element_by_dtype(clnorm_dtype dtype) {
    for (int i = 0; i < ELEMENTS; i++)
        if (dtype != CLNORM_DTYPE_NONE && elements[i].dtype == dtype)
            return &elements[i];
    return NULL;
}

double element_epsilon(const struct element *element) {
    return ref_epsilon(element->dtype);
}

double element_largest(const struct element *element) {
    return ref_largest(element->dtype);
}

double element_round(const struct element *element, double value) {
    return ref_round(element->dtype, value);
}

double element_load(const struct element *element, const void *data, uint64_t index) {
    return ref_load(element->dtype, data, index);
}

void element_store(const struct element *element, void *data, uint64_t index, double value) {
    ref_store(element->dtype, data, index, value);
}
