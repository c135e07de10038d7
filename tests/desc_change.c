#include "desc_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"

void change_apply(const struct change *change, void *desc) {
    unsigned char *const field = (unsigned char *)desc + change->offset;
    const uint32_t number = (uint32_t)change->number; /* enumerations and numbers of 32 bits are stored alike */
    switch (change->kind) {
    case NOTHING:
        break;
    case WIDE:
        memcpy(field, &change->number, sizeof change->number);
        break;
    case ENUM:
    case FLAG:
        memcpy(field, &number, sizeof number);
        break;
    case REAL:
        memcpy(field, &change->real, sizeof change->real);
        break;
    }
}

void assert_says(const char *first, const char *second) {
    const char *const detail = clnorm_error_detail();
    if (!strstr(detail, first) || !strstr(detail, second))
        fail_msg("\"%s\" does not contain \"%s\" and \"%s\"", detail, first, second);
}
