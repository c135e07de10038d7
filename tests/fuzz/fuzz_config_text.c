/* Texts of configs: a config that was read can be written, and is the same when read again. */
#include <stdlib.h>
#include <string.h>

#include "clnorm/clnorm.h"
#include "fuzz.h"

enum { TEXT = 512 };

static void check_again(const clnorm_config *config) {
    char text[TEXT], again[TEXT];
    clnorm_config read;
    const size_t length = clnorm_config_text(config, text, sizeof text);
    if (length >= sizeof text || strlen(text) != length)
        abort();
    if (clnorm_config_text(config, NULL, 0) != length || clnorm_config_parse(text, &read) != CLNORM_SUCCESS)
        abort();
    if (memcmp(&read, config, sizeof read) != 0)
        abort();
    clnorm_config_text(&read, again, sizeof again);
    if (strcmp(text, again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *const text = fuzz_text(data, size);
    clnorm_config config;
    memset(&config, 0x5a, sizeof config);
    const clnorm_config before = config;
    const clnorm_status status = clnorm_config_parse(text, &config);
    if (status == CLNORM_SUCCESS)
        check_again(&config);
    else if (status != CLNORM_INVALID_VALUE || !*clnorm_error_detail() || memcmp(&config, &before, sizeof config) != 0)
        abort();
    free(text);
    return 0;
}
