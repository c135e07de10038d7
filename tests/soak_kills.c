#include "soak.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program/cache.h"
#include "program/cache_folder.h"

enum { ENTRIES = 8, PAYLOAD = 1 << 18 };

static struct cln_cache_key key_of(unsigned entry) {
    struct cln_cache_key key = {NULL, 0};
    char options[32];
    (void)snprintf(options, sizeof options, "-D ENTRY=%u", entry);
    cln_cache_key_add_text(&key, "soak.cl");
    cln_cache_key_add_text(&key, "a device");
    cln_cache_key_add_text(&key, options);
    return key;
}

/* Fills an entry's payload: its index, and then one byte that depends on the version. */
static void fill(unsigned char *payload, unsigned entry, unsigned version) {
    memset(payload, (int)(unsigned char)(entry * 31 + version), PAYLOAD);
    memcpy(payload, &entry, sizeof entry);
}

static void store_for_ever(const char *dir, uint64_t random) {
    static unsigned char payload[PAYLOAD];
    for (;;) {
        const unsigned entry = (unsigned)soak_random(&random, ENTRIES);
        struct cln_cache_key key = key_of(entry);
        fill(payload, entry, (unsigned)soak_random(&random, 200));
        cln_cache_store(dir, &key, payload, sizeof payload);
        cln_cache_key_free(&key);
    }
}

/* Checks the entries that load, and returns their number. */
static unsigned check_entries(const char *dir) {
    unsigned found = 0;
    for (unsigned entry = 0; entry < ENTRIES; entry++) {
        struct cln_cache_key key = key_of(entry);
        unsigned char *payload = NULL;
        size_t length = 0;
        if (cln_cache_load(dir, &key, &payload, &length)) {
            bool right = length == PAYLOAD && memcmp(payload, &entry, sizeof entry) == 0;
            for (size_t i = sizeof entry; right && i < length; i++)
                right = payload[i] == payload[sizeof entry];
            if (!right)
                soak_fail("entry %u of the cache was loaded and is not what was stored", entry);
            free(payload);
            found++;
        }
        cln_cache_key_free(&key);
    }
    return found;
}

static void kill_one(const char *dir, uint64_t *random) {
    const uint64_t seed = soak_random(random, UINT64_MAX), microseconds = soak_random(random, 10000);
    const pid_t child = fork();
    if (child == 0)
        store_for_ever(dir, seed);
    if (child < 0)
        soak_fail("no process");
    const struct timespec pause = {0, (long)(microseconds * 1000)};
    (void)nanosleep(&pause, NULL);
    int status = 0;
    if (kill(child, SIGKILL) || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        soak_fail("a process that stores ended by itself");
}

/* Sets the times of a folder's files two hours back. Returns their number. */
static unsigned age_files(const char *dir) {
    const time_t then = time(NULL) - 7200;
    const struct timespec times[2] = {{then, 0}, {then, 0}};
    DIR *const directory = opendir(dir);
    unsigned count = 0;
    for (const struct dirent *item; directory && (item = readdir(directory));)
        if (*item->d_name != '.') {
            count++;
            (void)utimensat(dirfd(directory), item->d_name, times, AT_SYMLINK_NOFOLLOW);
        }
    if (directory)
        (void)closedir(directory);
    return count;
}

void soak_kills(uint64_t kills, uint64_t seed) {
    static const unsigned char last[] = "last";
    char dir[] = "/tmp/clnorm-soak-XXXXXX";
    uint64_t random = seed, loads = 0;
    if (!mkdtemp(dir))
        soak_fail("%s cannot be made", dir);
    for (uint64_t i = 0; i < kills; i++) {
        kill_one(dir, &random);
        loads += check_entries(dir);
    }
    struct cln_cache_key key = key_of(ENTRIES);
    const unsigned before = age_files(dir);
    cln_cache_store(dir, &key, last, sizeof last);
    const unsigned after = age_files(dir);
    printf("soak: %" PRIu64 " kills, %" PRIu64 " loads, all right; %u files, %u after the old ones were removed\n", kills,
           loads, before, after);
    if (kills >= ENTRIES && loads == 0)
        soak_fail("no entry was loaded after %" PRIu64 " kills", kills);
    if (after > ENTRIES + 1)
        soak_fail("%u files stay in the cache: expected at most %d entries", after, ENTRIES + 1);
    cln_cache_key_free(&key);
    if (clnorm_cache_clear(dir, NULL) || rmdir(dir))
        soak_fail("%s: %s", dir, clnorm_error_detail());
}
