#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"

/* Part of a selector, without a terminating NUL. */
struct piece {
    const char *at;
    size_t length;
};

static struct piece piece_of(const char *text) {
    return (struct piece){text, strlen(text)};
}

static struct piece trim(struct piece piece) {
    while (piece.length > 0 && isspace((unsigned char)piece.at[0])) {
        piece.at++;
        piece.length--;
    }
    while (piece.length > 0 && isspace((unsigned char)piece.at[piece.length - 1]))
        piece.length--;
    return piece;
}

/* Cuts the next piece, up to the separator or the end, off the front of rest; rest->at is NULL after the last one. */
static struct piece cut(struct piece *rest, char separator) {
    const char *const end = memchr(rest->at, separator, rest->length);
    const size_t length = end ? (size_t)(end - rest->at) : rest->length;
    const struct piece first = {rest->at, length};
    *rest = end ? (struct piece){end + 1, rest->length - length - 1} : (struct piece){NULL, 0};
    return trim(first);
}

static bool same_letters(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
            return false;
    return true;
}

static bool is(struct piece piece, const char *text) {
    return piece.length == strlen(text) && same_letters(piece.at, text, piece.length);
}

static bool contains(const char *text, struct piece part) {
    const size_t length = strlen(text);
    for (size_t i = 0; i + part.length <= length; i++)
        if (same_letters(text + i, part.at, part.length))
            return true;
    return false;
}

/* Whether the piece begins with prefix; then *value is what follows. */
static bool starts(struct piece piece, const char *prefix, struct piece *value) {
    const size_t length = strlen(prefix);
    if (piece.length < length || !same_letters(piece.at, prefix, length))
        return false;
    *value = trim((struct piece){piece.at + length, piece.length - length});
    return true;
}

/* Takes a number off the front; false when there are no digits or the number is above limit. */
static bool take_number(struct piece *piece, uint64_t limit, uint64_t *number) {
    uint64_t n = 0;
    size_t digits = 0;
    for (; digits < piece->length && isdigit((unsigned char)piece->at[digits]); digits++) {
        const uint64_t digit = (uint64_t)(piece->at[digits] - '0');
        if (n > (limit - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    piece->at += digits;
    piece->length -= digits;
    *number = n;
    return digits > 0;
}

/* "3:0" */
static bool parse_indices(struct piece piece, uint64_t indices[2]) {
    if (!take_number(&piece, UINT32_MAX, &indices[0]) || piece.length == 0 || piece.at[0] != ':')
        return false;
    piece = (struct piece){piece.at + 1, piece.length - 1};
    return take_number(&piece, UINT32_MAX, &indices[1]) && piece.length == 0;
}

/* Whether the piece is two numbers of any size, "3:0". */
static bool has_form_of_indices(struct piece piece) {
    size_t colons = 0;
    for (size_t i = 0; i < piece.length; i++) {
        colons += piece.at[i] == ':';
        if (piece.at[i] != ':' && !isdigit((unsigned char)piece.at[i]))
            return false;
    }
    return colons == 1 && piece.at[0] != ':' && piece.at[piece.length - 1] != ':';
}

/* "8G" */
static bool parse_bytes(struct piece piece, uint64_t *bytes) {
    static const char units[] = "KMGT";
    if (!take_number(&piece, UINT64_MAX, bytes))
        return false;
    if (piece.length == 0)
        return true;
    const char *const unit = strchr(units, toupper((unsigned char)piece.at[0]));
    if (piece.length != 1 || !unit || !*unit)
        return false;
    const unsigned shift = 10 * (unsigned)(unit - units + 1);
    if (*bytes > UINT64_MAX >> shift)
        return false;
    *bytes <<= shift;
    return true;
}

/* 8-4-4-4-12 hexadecimal digits */
static bool is_uuid(struct piece piece) {
    if (piece.length != 36)
        return false;
    for (size_t i = 0; i < piece.length; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? piece.at[i] != '-' : !isxdigit((unsigned char)piece.at[i]))
            return false;
    }
    return true;
}

enum verdict { HOLDS, FAILS, UNREADABLE };

static enum verdict holds_if(bool condition) {
    return condition ? HOLDS : FAILS;
}

static enum verdict holds_if_part(const char *text, struct piece part) {
    return part.length == 0 ? UNREADABLE : holds_if(contains(text, part));
}

/* Whether a term holds for a device. A term that cannot be parsed is UNREADABLE for every device. */
static enum verdict judge(struct piece term, const clnorm_device_info *info) {
    struct piece value = {NULL, 0};
    uint64_t indices[2] = {0, 0}, bytes = 0;
    if (is(term, "gpu"))
        return holds_if(info->kind == CLNORM_DEVICE_GPU);
    if (is(term, "accelerator"))
        return holds_if(info->kind == CLNORM_DEVICE_ACCELERATOR);
    if (is(term, "cpu"))
        return holds_if(info->kind == CLNORM_DEVICE_CPU);
    if (is(term, "fp16"))
        return holds_if(info->fp16);
    if (is(term, "fp64"))
        return holds_if(info->fp64);
    if (is(term, "subgroups"))
        return holds_if(info->subgroups);
    if (starts(term, "name=", &value))
        return holds_if_part(info->name, value);
    if (starts(term, "vendor=", &value))
        return holds_if_part(info->vendor, value);
    if (starts(term, "platform=", &value))
        return holds_if_part(info->platform_name, value);
    if (starts(term, "uuid:", &value))
        return is_uuid(value) ? holds_if(is(value, info->uuid)) : UNREADABLE;
    if (starts(term, "memory>=", &value))
        return parse_bytes(value, &bytes) ? holds_if(info->global_memory >= bytes) : UNREADABLE;
    if (parse_indices(term, indices))
        return holds_if(info->platform_index == indices[0] && info->device_index == indices[1]);
    return UNREADABLE;
}

/* Whether every term of an alternative holds. */
static bool matches(struct piece alternative, const clnorm_device_info *info) {
    while (alternative.at)
        if (judge(cut(&alternative, ','), info) != HOLDS)
            return false;
    return true;
}

/* Messages quote at most this much of a selector. */
static int shown(size_t length) {
    return length < 200 ? (int)length : 200;
}

/* Whether the whole selector can be parsed. origin: its name in messages. */
static clnorm_status check(struct piece selector, const char *origin) {
    static const clnorm_device_info any = {.device = NULL};
    struct piece rest = selector;
    while (rest.at) {
        struct piece alternative = cut(&rest, ';');
        while (alternative.at) {
            const struct piece term = cut(&alternative, ',');
            if (term.length == 0)
                return cln_fail(CLNORM_INVALID_SELECTOR, "%s is '%.*s': an alternative or term is empty", origin,
                                shown(selector.length), selector.at);
            const bool unreadable = judge(term, &any) == UNREADABLE;
            if (unreadable && has_form_of_indices(term))
                return cln_fail(CLNORM_INVALID_SELECTOR,
                                "%s has the term '%.*s': expected indices P:D, each from 0 to %" PRIu32, origin,
                                shown(term.length), term.at, UINT32_MAX);
            if (unreadable)
                return cln_fail(CLNORM_INVALID_SELECTOR,
                                "%s has the term '%.*s': expected gpu, cpu, accelerator, P:D, "
                                "uuid:UUID, name=TEXT, vendor=TEXT, platform=TEXT, memory>=NUMBER with K, M, G or T, fp16, "
                                "fp64 or subgroups",
                                origin, shown(term.length), term.at);
        }
    }
    return CLNORM_SUCCESS;
}

/* The first device of the first alternative that matches any; NULL when none does. */
static const clnorm_device_info *find(struct piece selector, const clnorm_device_info *infos, size_t count) {
    while (selector.at) {
        const struct piece alternative = cut(&selector, ';');
        for (size_t i = 0; i < count; i++)
            if (matches(alternative, &infos[i]))
                return &infos[i];
    }
    return NULL;
}

/* The least index that no device has: of a platform, or of a device of *platform. */
static uint64_t index_end(const clnorm_device_info *infos, size_t count, const uint64_t *platform) {
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t next = 1 + (uint64_t)(platform ? infos[i].device_index : infos[i].platform_index);
        if ((!platform || infos[i].platform_index == *platform) && next > end)
            end = next;
    }
    return end;
}

enum { REASON = 128 };

/* Says which index of a selector "P:D" is out of its range; "" for any other selector. */
static void index_reason(const char *text, const clnorm_device_info *infos, size_t count, char reason[REASON]) {
    uint64_t indices[2];
    *reason = '\0';
    if (!parse_indices(trim(piece_of(text)), indices))
        return;
    const uint64_t platforms = index_end(infos, count, NULL);
    const uint64_t devices = index_end(infos, count, &indices[0]);
    if (indices[0] >= platforms)
        (void)snprintf(reason, REASON, ": the platform's index is %" PRIu64 ", expected at most %" PRIu64, indices[0],
                       platforms - 1);
    else if (devices == 0)
        (void)snprintf(reason, REASON, ": platform %" PRIu64 " has no device that can be read", indices[0]);
    else if (indices[1] < devices)
        (void)snprintf(reason, REASON, ": device %" PRIu64 " of platform %" PRIu64 " cannot be read", indices[1],
                       indices[0]);
    else
        (void)snprintf(reason, REASON,
                       ": the device's index is %" PRIu64 ", expected at most %" PRIu64 " in platform %" PRIu64, indices[1],
                       devices - 1, indices[0]);
}

/* Where a driver failed, the message names it: the device may be one that could not be read. */
static clnorm_status fail_to_find(const char *text, const char *origin, const clnorm_device_info *infos, size_t count,
                                  const struct cln_unread *left_out) {
    char reason[REASON];
    index_reason(text, infos, count, reason);
    if (left_out->code == CL_SUCCESS)
        return cln_fail(CLNORM_DEVICE_NOT_FOUND, "%s: no OpenCL device matches '%.*s' (%zu found)%s", origin,
                        shown(strlen(text)), text, count, reason);
    return cln_fail_code(CLNORM_DEVICE_NOT_FOUND, left_out->code,
                         "%s: no OpenCL device matches '%.*s' (%zu found; reading %s failed with %s)%s", origin,
                         shown(strlen(text)), text, count, left_out->what, cln_opencl_code_name(left_out->code), reason);
}

clnorm_status clnorm_device_select(const char *selector, clnorm_device_info *info) {
    const clnorm_status readable = cln_struct_check(&cln_device_info_struct, info);
    if (readable)
        return readable;
    const bool given = selector && *selector;
    const char *const variable = getenv("CLNORM_DEVICE");
    const char *const text = given ? selector : variable ? variable : "";
    const char *const origin = given ? "the device selector" : "the device selector in CLNORM_DEVICE";
    const bool best = !*text;
    clnorm_status status = best ? CLNORM_SUCCESS : check(piece_of(text), origin);
    clnorm_device_info *infos = NULL;
    size_t count = 0;
    struct cln_unread left_out;
    if (status == CLNORM_SUCCESS)
        status = cln_device_all(&infos, &count, &left_out);
    if (status != CLNORM_SUCCESS)
        return status;
    const clnorm_device_info *const found = best ? infos : find(piece_of(text), infos, count);
    if (found)
        cln_struct_give(&cln_device_info_struct, found, info);
    else if (!infos)
        status = cln_fail(CLNORM_DEVICE_NOT_FOUND, "there is no OpenCL device");
    else
        status = fail_to_find(text, origin, infos, count, &left_out);
    free(infos);
    return status;
}
