/* A libnvidia-ml.so.1 that says what the JSON file named by $FAKE_NVML_STATE says, read again whenever it changes.
 *
 * One translation unit; what each part adds stands at its top, what the file may say in the guide "A fake NVML". The functions are
 * NVML's, with NVML's rules: two-call lists, version words, return codes. Each begins with ENTER, which counts the call, takes the time
 * a driver would take and answers with the fault that the state wishes for it; it holds the lock until the function returns.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GPUS = 128, MAX_MIG_HANDLES = 1024, MAX_EVENT_SETS = 64 };
enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10, GPU_IS_LOST = 15, INSUFFICIENT_RESOURCES = 23, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};

enum { NO_SESSION, A_SESSION, A_DEVICE }; /* what a call needs before it can answer */

typedef int ret;
typedef unsigned int uint;
typedef unsigned long long ull;

#include "json.c"

typedef struct symbol {
    const char *name;
    char base[64];              /* without _v2 and the like: how a state file may name it whatever the version */
    uint32_t hash, base_hash;
    const node *everywhere;     /* the fault wished for it on every device */
    struct symbol **slot;
} symbol;

typedef struct device {
    char uuid[96], bus_id[32];
    const node *node;           /* what the state says of it now; NULL where it is gone */
    const node *symbols, *error, *latency;
    struct device *parent;      /* of a MIG instance */
    uint index;
} device;

#include "counts.c"
#include "state.c"

#define API __attribute__((visibility("default")))
#define ENTER_FOR(name_, device_, needs_, extra_us_)                                                                       \
    static symbol symbol_ = {.name = #name_};                                                                              \
    static symbol *slot_ __attribute__((section("fake_symbols"), used)) = &symbol_;                                        \
    bool locked_ __attribute__((cleanup(leave))) = false;                                                                  \
    {                                                                                                                      \
        ret entered_ = enter(&symbol_, device_, needs_, extra_us_, &locked_);                                              \
        if (entered_ != SUCCESS) return entered_;                                                                          \
    }
#define ENTER(name_, device_) ENTER_FOR(name_, device_, A_DEVICE, 0)
#define ENTER_SYSTEM(name_) ENTER_FOR(name_, NULL, A_SESSION, 0)

/* Calls that give one number or text of the device. */
#define UINT_CALL(name_, key_) \
    API ret name_(device *d, uint *out) { ENTER(name_, d) return get_uint(d, key_, out); }
#define ULL_CALL(name_, key_) \
    API ret name_(device *d, ull *out) { ENTER(name_, d) return get_ull(d, key_, out); }
#define TEXT_CALL(name_, key_) \
    API ret name_(device *d, char *out, uint size) { ENTER(name_, d) return get_text(d, key_, out, size); }

/* Fill in the names' hashes before anything can be called. */
__attribute__((constructor)) static void name_symbols(void) {
    for (symbol **s = __start_fake_symbols; s < __stop_fake_symbols; s++) {
        symbol *it = *s;
        snprintf(it->base, sizeof it->base, "%s", it->name);
        char *version = strrchr(it->base, '_');
        if (version && version[1] == 'v' && isdigit((unsigned char)version[2])) *version = 0;
        char *flags = strstr(it->base, "WithFlags");
        if (flags) *flags = 0;
        it->hash = hash_of(it->name);
        it->base_hash = hash_of(it->base);
        it->slot = s;
    }
}

#include "layouts.c"
#include "system.c"
#include "identity.c"
#include "readings.c"
#include "errors.c"
#include "links.c"
#include "fields.c"
#include "profiling.c"
#include "processes.c"
#include "mig.c"
#include "vgpu.c"
#include "topology.c"
#include "events.c"
#include "unsupported.c"
