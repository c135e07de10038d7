/* Device selectors on the invented machine of fake_opencl.h. */
#include <stdlib.h>
#include <string.h>

#include "clnorm/clnorm.h"
#include "fake_opencl.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count, (void)arguments;
    return fake_setup(NULL);
}

/* An alternative that matches no device leaves the choice to the next one. */
static void check_order(const char *text, const clnorm_device_info *chosen) {
    static const char never[] = "name=no device has this;";
    char *const longer = malloc(sizeof never + strlen(text));
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    if (!longer)
        abort();
    memcpy(longer, never, sizeof never - 1);
    memcpy(longer + sizeof never - 1, text, strlen(text) + 1);
    if (clnorm_device_select(longer, &info) != CLNORM_SUCCESS || info.device != chosen->device)
        abort();
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *const text = fuzz_text(data, size);
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    switch (clnorm_device_select(text, &info)) {
    case CLNORM_SUCCESS:
        if (!info.device)
            abort();
        if (*text)
            check_order(text, &info);
        break;
    case CLNORM_INVALID_SELECTOR:
    case CLNORM_DEVICE_NOT_FOUND:
        if (info.device || !*clnorm_error_detail())
            abort();
        break;
    default:
        abort();
    }
    free(text);
    return 0;
}
