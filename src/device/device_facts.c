#include "device/device_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------------- queries */

/* Reads the facts of a device or platform. unread: the first required fact that cannot be read. */
struct reader {
    cl_platform_id platform;
    cl_device_id device; /* NULL: queries go to the platform */
    struct cln_unread unread;
};

/* A required fact decides which kernel is chosen, or is part of the key of a program on disk. */
enum need { REQUIRED, OPTIONAL };

static void miss(struct reader *reader, cl_int code, enum need need, const char *fact) {
    const bool matters = need == REQUIRED || code == CLN_NO_MEMORY;
    if (matters && reader->unread.code == CL_SUCCESS)
        reader->unread = (struct cln_unread){code, fact};
}

static cl_int query(const struct reader *reader, cl_uint what, size_t capacity, void *value, size_t *size) {
    return reader->device ? clGetDeviceInfo(reader->device, what, capacity, value, size)
                          : clGetPlatformInfo(reader->platform, what, capacity, value, size);
}

/* Leaves value as it is where it cannot be read. */
static void read_value(struct reader *reader, cl_uint what, enum need need, const char *fact, void *value, size_t size) {
    const cl_int code = query(reader, what, size, value, NULL);
    if (code != CL_SUCCESS)
        miss(reader, code, need, fact);
}

static unsigned read_uint(struct reader *reader, cl_uint what, enum need need, const char *fact) {
    cl_uint value = 0;
    read_value(reader, what, need, fact, &value, sizeof value);
    return value;
}

static uint64_t read_ulong(struct reader *reader, cl_uint what, enum need need, const char *fact) {
    cl_ulong value = 0;
    read_value(reader, what, need, fact, &value, sizeof value);
    return value;
}

/* A value of any length in a new allocation with a NUL after it; NULL where it cannot be read. *size is without the NUL.
 */
static char *read_all(struct reader *reader, cl_uint what, enum need need, const char *fact, size_t *size) {
    char *value = NULL;
    cl_int code = query(reader, what, 0, NULL, size);
    if (code == CL_SUCCESS) {
        value = calloc(*size + 1, 1);
        code = value ? CL_SUCCESS : CLN_NO_MEMORY;
    }
    if (code == CL_SUCCESS && *size > 0)
        code = query(reader, what, *size, value, NULL);
    if (code == CL_SUCCESS)
        return value;
    free(value);
    miss(reader, code, need, fact);
    return NULL;
}

/* Copies without leading and trailing blanks. A text that is too long is cut between two UTF-8 characters. */
static void copy_text(char *to, size_t capacity, const char *from) {
    static const char blanks[] = " \t\r\n";
    from += strspn(from, blanks);
    size_t length = strlen(from);
    if (length >= capacity) {
        length = capacity - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80)
            length--;
    }
    while (length > 0 && strchr(blanks, from[length - 1]))
        length--;
    memcpy(to, from, length);
    to[length] = '\0';
}

enum { TEXT_CAPACITY = sizeof(((clnorm_device_info *)NULL)->name) };

static void read_text(struct reader *reader, cl_uint what, enum need need, const char *fact, char to[TEXT_CAPACITY]) {
    size_t size = 0;
    char *const whole = read_all(reader, what, need, fact, &size);
    if (whole)
        copy_text(to, TEXT_CAPACITY, whole);
    free(whole);
}

/* The highest version of a name in a list of cl_name_version; 0 where the name is missing. */
static cl_version read_named_version(struct reader *reader, cl_uint what, const char *fact, const char *name) {
    cl_version highest = 0;
    size_t size = 0;
    char *const list = read_all(reader, what, OPTIONAL, fact, &size);
    cl_name_version entry;
    for (size_t i = 0; list && size - i >= sizeof entry; i += sizeof entry) {
        memcpy(&entry, list + i, sizeof entry);
        if (strncmp(entry.name, name, sizeof entry.name) == 0 && entry.version > highest)
            highest = entry.version;
    }
    free(list);
    return highest;
}

/* ----------------------------------------------------------------------------------------------------------- facts */

/* Queries of extensions, which older OpenCL headers lack. */
enum {
    QUERY_UUID = 0x106A,                     /* cl_khr_device_uuid */
    QUERY_COMPUTE_CAPABILITY_MAJOR = 0x4000, /* cl_nv_device_attribute_query */
    QUERY_COMPUTE_CAPABILITY_MINOR = 0x4001,
    QUERY_WARP_SIZE = 0x4003,
};

const char *clnorm_platform_family_name(clnorm_platform_family family) {
    switch (family) {
    case CLNORM_PLATFORM_POCL:
        return "pocl";
    case CLNORM_PLATFORM_NVIDIA:
        return "nvidia";
    case CLNORM_PLATFORM_MESA:
        return "mesa";
    case CLNORM_PLATFORM_OCLGRIND:
        return "oclgrind";
    case CLNORM_PLATFORM_OTHER:
        break;
    }
    return "other";
}

static clnorm_device_kind kind_of(cl_device_type type) {
    switch (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU)) {
    case CL_DEVICE_TYPE_GPU:
        return CLNORM_DEVICE_GPU;
    case CL_DEVICE_TYPE_ACCELERATOR:
        return CLNORM_DEVICE_ACCELERATOR;
    case CL_DEVICE_TYPE_CPU:
        return CLNORM_DEVICE_CPU;
    default: /* none of them, or Oclgrind, which claims to be all of them */
        return CLNORM_DEVICE_OTHER;
    }
}

/* By the platform's name, as PoCL and Mesa report the vendor of the hardware. */
static clnorm_platform_family family_of(const char *platform_name) {
    static const struct {
        const char *name;
        clnorm_platform_family family;
    } platforms[] = {
        {"Portable Computing Language", CLNORM_PLATFORM_POCL},
        {"NVIDIA CUDA", CLNORM_PLATFORM_NVIDIA},
        {"rusticl", CLNORM_PLATFORM_MESA},
        {"Clover", CLNORM_PLATFORM_MESA},
        {"Oclgrind", CLNORM_PLATFORM_OCLGRIND},
    };
    for (size_t i = 0; i < sizeof platforms / sizeof platforms[0]; i++)
        if (strcmp(platforms[i].name, platform_name) == 0)
            return platforms[i].family;
    return CLNORM_PLATFORM_OTHER;
}

/* NVIDIA reports 48 KiB, which is the limit of __local arguments. An array declared in a kernel may have what a CUDA
 * kernel can opt in to, less 1 KiB for the driver. 0 for an unknown capability. */
static uint64_t nvidia_local_memory(unsigned compute_capability) {
    static const struct {
        unsigned first, last; /* compute capability */
        unsigned kib;
    } limits[] = {
        {70, 70, 95}, {75, 75, 63},  {80, 80, 162},   {86, 86, 98},   {87, 87, 162},
        {89, 89, 98}, {90, 90, 226}, {100, 109, 226}, {120, 129, 98},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (compute_capability >= limits[i].first && compute_capability <= limits[i].last)
            return (uint64_t)limits[i].kib << 10;
    return 0;
}

static void read_nvidia(struct reader *reader, clnorm_device_info *info) {
    const unsigned major = read_uint(reader, QUERY_COMPUTE_CAPABILITY_MAJOR, OPTIONAL, "the device's compute capability");
    const unsigned minor = read_uint(reader, QUERY_COMPUTE_CAPABILITY_MINOR, OPTIONAL, "the device's compute capability");
    info->compute_capability = 10 * major + minor;
    info->subgroup_size = read_uint(reader, QUERY_WARP_SIZE, OPTIONAL, "the device's warp size");
    const uint64_t declared = nvidia_local_memory(info->compute_capability);
    if (declared > info->local_memory)
        info->local_memory = declared;
}

static void read_uuid(struct reader *reader, clnorm_device_info *info) {
    unsigned char bytes[16] = {0};
    const cl_int code = query(reader, QUERY_UUID, sizeof bytes, bytes, NULL);
    if (code != CL_SUCCESS) {
        miss(reader, code, OPTIONAL, "the device's UUID");
        return;
    }
    char *to = info->uuid;
    for (unsigned i = 0; i < sizeof bytes; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        to += snprintf(to, 4, "%s%02x", dash ? "-" : "", bytes[i]);
    }
}

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + length, word))
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Abilities of the device beyond the core of OpenCL 1.2. */
static void read_extensions(struct reader *reader, clnorm_device_info *info) {
    size_t size = 0;
    char *const extensions = read_all(reader, CL_DEVICE_EXTENSIONS, OPTIONAL, "the device's extensions", &size);
    const char *const list = extensions ? extensions : "";
    info->fp16 = has_word(list, "cl_khr_fp16");
    info->fp64 = has_word(list, "cl_khr_fp64");
    info->subgroups =
        has_word(list, "cl_khr_subgroups") ||
        read_named_version(reader, CL_DEVICE_OPENCL_C_FEATURES, "the device's features", "__opencl_c_subgroups") > 0;
    info->device_fences = (info->opencl_c_version >= 200 && info->opencl_c_version < 300) ||
                          (read_named_version(reader, CL_DEVICE_OPENCL_C_FEATURES, "the device's features",
                                              "__opencl_c_atomic_scope_device") > 0 &&
                           read_named_version(reader, CL_DEVICE_OPENCL_C_FEATURES, "the device's features",
                                              "__opencl_c_atomic_order_acq_rel") > 0);
    if (has_word(list, "cl_khr_device_uuid"))
        read_uuid(reader, info);
    free(extensions);
}

/* The highest OpenCL C version that the compiler accepts. An OpenCL 3.0 device may give an older one as
 * CL_DEVICE_OPENCL_C_VERSION. */
static unsigned read_opencl_c_version(struct reader *reader) {
    char text[TEXT_CAPACITY] = "";
    unsigned major = 0, minor = 0;
    read_text(reader, CL_DEVICE_OPENCL_C_VERSION, OPTIONAL, "the device's OpenCL C version", text);
    if (sscanf(text, "OpenCL C %2u.%2u", &major, &minor) != 2)
        major = minor = 0;
    const unsigned named = 100 * major + 10 * minor;
    const cl_version highest =
        read_named_version(reader, CL_DEVICE_OPENCL_C_ALL_VERSIONS, "the device's OpenCL C versions", "OpenCL C");
    const unsigned listed = 100 * CL_VERSION_MAJOR(highest) + 10 * CL_VERSION_MINOR(highest);
    return listed > named ? listed : named;
}

struct cln_unread cln_device_read(clnorm_device_info *info) {
    struct reader of_platform = {info->platform, NULL, {CL_SUCCESS, NULL}};
    read_text(&of_platform, CL_PLATFORM_NAME, REQUIRED, "the platform's name", info->platform_name);
    read_text(&of_platform, CL_PLATFORM_VERSION, REQUIRED, "the platform's version", info->platform_version);
    if (of_platform.unread.code != CL_SUCCESS)
        return of_platform.unread;
    info->family = family_of(info->platform_name);

    struct reader reader = {info->platform, info->device, {CL_SUCCESS, NULL}};
    read_text(&reader, CL_DEVICE_NAME, REQUIRED, "the device's name", info->name);
    read_text(&reader, CL_DEVICE_VENDOR, OPTIONAL, "the device's vendor", info->vendor);
    read_text(&reader, CL_DEVICE_VERSION, REQUIRED, "the device's version", info->version);
    read_text(&reader, CL_DRIVER_VERSION, REQUIRED, "the device's driver version", info->driver);
    info->kind = kind_of(read_ulong(&reader, CL_DEVICE_TYPE, REQUIRED, "the device's type"));
    info->compute_units = read_uint(&reader, CL_DEVICE_MAX_COMPUTE_UNITS, REQUIRED, "the device's compute units");
    info->clock_mhz = read_uint(&reader, CL_DEVICE_MAX_CLOCK_FREQUENCY, OPTIONAL, "the device's clock");
    info->native_vector_float =
        read_uint(&reader, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, OPTIONAL, "the device's vector width");
    info->global_memory = read_ulong(&reader, CL_DEVICE_GLOBAL_MEM_SIZE, REQUIRED, "the device's global memory");
    info->max_allocation = read_ulong(&reader, CL_DEVICE_MAX_MEM_ALLOC_SIZE, REQUIRED, "the device's largest allocation");
    info->cache_size = read_ulong(&reader, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, OPTIONAL, "the device's cache");
    info->local_memory = read_ulong(&reader, CL_DEVICE_LOCAL_MEM_SIZE, REQUIRED, "the device's local memory");
    size_t work_group = 0;
    read_value(&reader, CL_DEVICE_MAX_WORK_GROUP_SIZE, REQUIRED, "the device's work-group size", &work_group,
               sizeof work_group);
    info->max_work_group_size = work_group;
    info->little_endian = read_uint(&reader, CL_DEVICE_ENDIAN_LITTLE, REQUIRED, "the device's byte order") != CL_FALSE;
    info->opencl_c_version = read_opencl_c_version(&reader);
    read_extensions(&reader, info);
    if (info->family == CLNORM_PLATFORM_NVIDIA)
        read_nvidia(&reader, info);
    return reader.unread;
}
