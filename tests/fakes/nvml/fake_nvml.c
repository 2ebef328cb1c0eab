/* A libnvidia-ml.so.1 for tests: serves the numbers of the text file named by $FAKE_NVML_STATE, read again at each call.
 *
 * Lines are `key=value`; `#` starts a comment. Keys of the whole system: count, driver_version, latency_ms, and the name of a system
 * call (`nvmlInit=!9`). Keys of a device: `<index>.<name>` or, for all, `*.<name>`; a device's own line wins. `<index>.error=15` makes
 * every call for it fail. A value `!N` is NVML's return code N instead of a value; a missing key is NOT_SUPPORTED (3). Field values are
 * `field.<id>`, GPM metrics `gpm.<id>`, per-link values `link.<n>.<name>`; the value's type follows field_type().
 *
 * Built with -DOLD_DRIVER it lacks the symbols that came with newer drivers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15, VERSION_MISMATCH = 25
};

typedef int ret;
typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct { int index; } device;

#define MAX_DEVICES 64
static device devices[MAX_DEVICES];
static int initialised = 0;

/* ---- the state file ---- */

static int lookup_in(char *text, const char *key, char *out, size_t size) {
    size_t n = strlen(key);
    int found = 0;
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (strncmp(line, key, n) == 0 && line[n] == '=') { /* the last line wins, so that a test can append */
            size_t length = end ? (size_t)(end - line - (long)n - 1) : strlen(line + n + 1);
            if (length >= size) length = size - 1;
            memcpy(out, line + n + 1, length);
            out[length] = 0;
            found = 1;
        }
        line = end ? end + 1 : NULL;
    }
    return found;
}

static char *state(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return NULL;
    size_t size = 1 << 20;
    char *text = malloc(size);
    size_t n = fread(text, 1, size - 1, file);
    text[n] = 0;
    fclose(file);
    return text;
}

static ret text_of(const char *key, const char *fallback_key, char *out, size_t size) {
    char *text = state();
    if (!text) return DRIVER_NOT_LOADED;
    int found = lookup_in(text, key, out, size) || (fallback_key && lookup_in(text, fallback_key, out, size));
    free(text);
    if (!found) return NOT_SUPPORTED;
    return out[0] == '!' ? atoi(out + 1) : SUCCESS;
}

/* The device's word for `name`; every device call goes through here, so that errors and latency apply to all. */
static ret device_text(const device *d, const char *name, char *out, size_t size) {
    char own[128], all[128], word[128];
    if (!initialised) return UNINITIALIZED;
    if (!d || d < devices || d >= devices + MAX_DEVICES) return INVALID_ARGUMENT;
    if (text_of("latency_ms", NULL, word, sizeof word) == SUCCESS && atoi(word) > 0) usleep((uint)atoi(word) * 1000);
    snprintf(own, sizeof own, "%d.error", d->index);
    if (text_of(own, NULL, word, sizeof word) == SUCCESS && atoi(word)) return atoi(word);
    snprintf(own, sizeof own, "%d.%s", d->index, name);
    snprintf(all, sizeof all, "*.%s", name);
    return text_of(own, all, out, size);
}

static ret device_number(const device *d, const char *name, ull *out) {
    char word[128];
    ret r = device_text(d, name, word, sizeof word);
    if (r == SUCCESS) *out = strtoull(word, NULL, 0);
    return r;
}

static ret device_uint(const device *d, const char *name, uint *out) {
    ull value = 0;
    ret r = device_number(d, name, &value);
    if (r == SUCCESS) *out = (uint)value;
    return r;
}

static ret device_string(const device *d, const char *name, char *out, uint size) {
    char word[256];
    ret r = device_text(d, name, word, sizeof word);
    if (r != SUCCESS) return r;
    if (strlen(word) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, word);
    return SUCCESS;
}

/* ---- system ---- */

ret nvmlInitWithFlags(uint flags) {
    char word[64];
    (void)flags;
    ret r = text_of("nvmlInit", NULL, word, sizeof word);
    if (r != SUCCESS && r != NOT_SUPPORTED) return r;
    for (int i = 0; i < MAX_DEVICES; i++) devices[i].index = i;
    initialised++;
    return SUCCESS;
}
ret nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
ret nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised--;
    return SUCCESS;
}
const char *nvmlErrorString(ret r) { return r == GPU_IS_LOST ? "GPU is lost" : r == SUCCESS ? "Success" : "Fake error"; }

static ret system_string(const char *key, char *out, uint size) {
    char word[256];
    if (!initialised) return UNINITIALIZED;
    ret r = text_of(key, NULL, word, sizeof word);
    if (r != SUCCESS) return r;
    if (strlen(word) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, word);
    return SUCCESS;
}
ret nvmlSystemGetDriverVersion(char *out, uint size) { return system_string("driver_version", out, size); }
ret nvmlSystemGetNVMLVersion(char *out, uint size) { return system_string("driver_version", out, size); }

ret nvmlDeviceGetCount_v2(uint *count) {
    char word[64];
    if (!initialised) return UNINITIALIZED;
    ret r = text_of("count", NULL, word, sizeof word);
    if (r == SUCCESS) *count = (uint)atoi(word);
    return r;
}

/* ---- identity ---- */

ret nvmlDeviceGetHandleByIndex_v2(uint index, device **out) {
    char key[64], word[64];
    uint count = 0;
    ret r = nvmlDeviceGetCount_v2(&count);
    if (r != SUCCESS) return r;
    if (index >= count) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "%u.nvmlDeviceGetHandleByIndex", index);
    r = text_of(key, NULL, word, sizeof word);
    if (r != SUCCESS && r != NOT_SUPPORTED) return r;
    *out = &devices[index];
    return SUCCESS;
}
ret nvmlDeviceGetIndex(device *d, uint *out) {
    if (!d) return INVALID_ARGUMENT;
    *out = (uint)d->index;
    return SUCCESS;
}
ret nvmlDeviceGetName(device *d, char *out, uint size) { return device_string(d, "name", out, size); }
ret nvmlDeviceGetUUID(device *d, char *out, uint size) { return device_string(d, "uuid", out, size); }
ret nvmlDeviceGetSerial(device *d, char *out, uint size) { return device_string(d, "serial", out, size); }
ret nvmlDeviceGetVbiosVersion(device *d, char *out, uint size) { return device_string(d, "vbios_version", out, size); }
ret nvmlDeviceGetBoardPartNumber(device *d, char *out, uint size) { return device_string(d, "board_part", out, size); }
ret nvmlDeviceGetModuleId(device *d, uint *out) { return device_uint(d, "module_id", out); }
ret nvmlDeviceGetMinorNumber(device *d, uint *out) { return nvmlDeviceGetIndex(d, out); }

typedef struct {
    char bus_id_legacy[16];
    uint domain, bus, device, pci_device_id, pci_sub_system_id;
    char bus_id[32];
} pci_info;
ret nvmlDeviceGetPciInfo_v3(device *d, pci_info *out) {
    memset(out, 0, sizeof *out);
    ret r = device_string(d, "bus_id", out->bus_id, sizeof out->bus_id);
    if (r != SUCCESS) return r;
    uint function;
    sscanf(out->bus_id, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function);
    return SUCCESS;
}
ret nvmlDeviceGetMigMode(device *d, uint *current, uint *pending) {
    ret r = device_uint(d, "mig_mode", current);
    *pending = *current;
    return r;
}

/* ---- readings ---- */

typedef struct { uint version; ull total, reserved, free, used; } memory_v2;
ret nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *out) {
    if (out->version != 0x02000028) return VERSION_MISMATCH;
    ret r = device_number(d, "memory_total_bytes", &out->total);
    if (r == SUCCESS) r = device_number(d, "memory_reserved_bytes", &out->reserved);
    if (r == SUCCESS) r = device_number(d, "memory_used_bytes", &out->used);
    if (r == SUCCESS) out->free = out->total - out->reserved - out->used;
    return r;
}
typedef struct { uint gpu, memory; } utilization;
ret nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
    ret r = device_uint(d, "utilization_percent", &out->gpu);
    if (r == SUCCESS && device_uint(d, "memory_utilization_percent", &out->memory) != SUCCESS) out->memory = 0;
    return r;
}
ret nvmlDeviceGetTemperature(device *d, uint sensor, uint *out) {
    return sensor == 0 ? device_uint(d, "temperature_celsius", out) : INVALID_ARGUMENT;
}
ret nvmlDeviceGetTemperatureThreshold(device *d, uint which, uint *out) {
    return which == 0 ? device_uint(d, "shutdown_celsius", out) : which == 1 ? device_uint(d, "slowdown_celsius", out) : NOT_SUPPORTED;
}
#ifndef OLD_DRIVER
typedef struct { uint version, sensor; int temperature; } temperature_v1;
ret nvmlDeviceGetTemperatureV(device *d, temperature_v1 *out) {
    if (out->version != 0x0100000C) return VERSION_MISMATCH;
    return nvmlDeviceGetTemperature(d, out->sensor, (uint *)&out->temperature);
}
typedef struct { uint version; int margin; } margin_v1;
ret nvmlDeviceGetMarginTemperature(device *d, margin_v1 *out) {
    if (out->version != 0x01000008) return VERSION_MISMATCH;
    return device_uint(d, "margin_celsius", (uint *)&out->margin);
}
ret nvmlDeviceGetCurrentClocksEventReasons(device *d, ull *out) { return device_number(d, "clock_reasons", out); }
#endif
ret nvmlDeviceGetCurrentClocksThrottleReasons(device *d, ull *out) { return device_number(d, "clock_reasons", out); }
ret nvmlDeviceGetPowerUsage(device *d, uint *out) { return device_uint(d, "power_milliwatts", out); }
ret nvmlDeviceGetEnforcedPowerLimit(device *d, uint *out) { return device_uint(d, "power_limit_milliwatts", out); }
ret nvmlDeviceGetPowerManagementLimitConstraints(device *d, uint *low, uint *high) {
    ret r = device_uint(d, "power_limit_min_milliwatts", low);
    return r == SUCCESS ? device_uint(d, "power_limit_max_milliwatts", high) : r;
}
ret nvmlDeviceGetTotalEnergyConsumption(device *d, ull *out) { return device_number(d, "energy_millijoules", out); }
static ret clock_of(device *d, uint type, const char *sm, const char *memory, uint *out) {
    return type == 1 ? device_uint(d, sm, out) : type == 2 ? device_uint(d, memory, out) : NOT_SUPPORTED;
}
ret nvmlDeviceGetClockInfo(device *d, uint type, uint *out) {
    return clock_of(d, type, "sm_clock_megahertz", "memory_clock_megahertz", out);
}
ret nvmlDeviceGetMaxClockInfo(device *d, uint type, uint *out) {
    return clock_of(d, type, "sm_clock_max_megahertz", "memory_clock_max_megahertz", out);
}
ret nvmlDeviceGetFanSpeed(device *d, uint *out) { return device_uint(d, "fan_percent", out); }
ret nvmlDeviceGetPerformanceState(device *d, uint *out) { return device_uint(d, "performance_state", out); }
typedef struct { ull reference, violation; } violation_time;
ret nvmlDeviceGetViolationStatus(device *d, uint policy, violation_time *out) {
    out->reference = 0;
    return policy == 0   ? device_number(d, "violation_power_nanoseconds", &out->violation)
           : policy == 1 ? device_number(d, "violation_thermal_nanoseconds", &out->violation)
                         : NOT_SUPPORTED;
}

/* ---- PCIe, ECC, repair ---- */

ret nvmlDeviceGetCurrPcieLinkGeneration(device *d, uint *out) { return device_uint(d, "pcie_generation", out); }
ret nvmlDeviceGetMaxPcieLinkGeneration(device *d, uint *out) { return device_uint(d, "pcie_generation_max", out); }
ret nvmlDeviceGetCurrPcieLinkWidth(device *d, uint *out) { return device_uint(d, "pcie_width", out); }
ret nvmlDeviceGetMaxPcieLinkWidth(device *d, uint *out) { return device_uint(d, "pcie_width_max", out); }
ret nvmlDeviceGetPcieReplayCounter(device *d, uint *out) { return device_uint(d, "pcie_replays", out); }
ret nvmlDeviceGetTotalEccErrors(device *d, uint error, uint counter, ull *out) {
    static const char *const names[2][2] = {{"ecc_corrected_volatile", "ecc_corrected_aggregate"},
                                            {"ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"}};
    return error > 1 || counter > 1 ? INVALID_ARGUMENT : device_number(d, names[error][counter], out);
}
ret nvmlDeviceGetRemappedRows(device *d, uint *correctable, uint *uncorrectable, uint *pending, uint *failed) {
    ret r = device_uint(d, "remapped_correctable", correctable);
    if (r == SUCCESS) r = device_uint(d, "remapped_uncorrectable", uncorrectable);
    if (r == SUCCESS) r = device_uint(d, "remapped_pending", pending);
    return r == SUCCESS ? device_uint(d, "remapped_failed", failed) : r;
}

/* ---- NVLink ---- */

static ret link_uint(device *d, uint link, const char *name, ull *out) {
    char own[64], all[64];
    snprintf(own, sizeof own, "link.%u.%s", link, name);
    snprintf(all, sizeof all, "link.%s", name);
    ret r = device_number(d, own, out);
    return r == NOT_SUPPORTED ? device_number(d, all, out) : r;
}
ret nvmlDeviceGetNvLinkState(device *d, uint link, uint *active) {
    ull value = 0;
    ret r = link_uint(d, link, "active", &value);
    *active = (uint)value;
    return r;
}
ret nvmlDeviceGetNvLinkErrorCounter(device *d, uint link, uint counter, ull *out) {
    static const char *const names[] = {"replay", "recovery", "crc_flit", "crc_data"};
    return counter > 3 ? NOT_SUPPORTED : link_uint(d, link, names[counter], out);
}

/* ---- field values ---- */

typedef struct {
    uint field, scope;
    long long timestamp, latency;
    uint type;
    ret result;
    union { double d; uint u; unsigned long ul; ull ull_; long long sll; int i; unsigned short us; } value;
} field_value;

static uint field_type(uint id) { /* 5 signed int, 1 unsigned int, 3 unsigned long long: what real drivers answer */
    if (id == 193 || id == 194) return 5;
    if (id == 82 || id == 91 || id == 94 || id == 185 || id == 186) return 1;
    if (id == 197 || id == 198) return getenv("FAKE_NVML_PCIE_32BIT") ? 1 : 3;
    return 3;
}
ret nvmlDeviceGetFieldValues(device *d, int count, field_value *values) {
    char name[64], word[128];
    ret r = device_text(d, "uuid", word, sizeof word);
    if (r != SUCCESS && r != NOT_SUPPORTED) return r;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "field.%u", values[i].field);
        values[i].timestamp = 0;
        values[i].result = device_text(d, name, word, sizeof word);
        values[i].type = field_type(values[i].field);
        values[i].value.ull_ = 0;
        if (values[i].result != SUCCESS) continue;
        if (values[i].type == 5) values[i].value.i = atoi(word);
        else if (values[i].type == 1) values[i].value.u = (uint)strtoull(word, NULL, 0);
        else values[i].value.ull_ = strtoull(word, NULL, 0);
    }
    return SUCCESS;
}

/* ---- GPM ---- */
#ifndef OLD_DRIVER
typedef struct { uint version, supported; } gpm_support;
ret nvmlGpmQueryDeviceSupport(device *d, gpm_support *out) {
    if (out->version != 1) return VERSION_MISMATCH;
    out->supported = 0;
    ret r = device_uint(d, "gpm", &out->supported);
    return r == NOT_SUPPORTED ? SUCCESS : r;
}
typedef struct { const device *of; } gpm_sample;
ret nvmlGpmSampleAlloc(gpm_sample **out) {
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
ret nvmlGpmSampleFree(gpm_sample *sample) {
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    return SUCCESS;
}
ret nvmlGpmSampleGet(device *d, gpm_sample *sample) {
    char word[64];
    ret r = device_text(d, "gpm", word, sizeof word);
    if (r != SUCCESS) return r;
    sample->of = d;
    return SUCCESS;
}
typedef struct { uint id; ret result; double value; char *short_name, *long_name, *unit; } gpm_metric;
typedef struct { uint version, count; gpm_sample *one, *two; gpm_metric metrics[]; } gpm_metrics;
ret nvmlGpmMetricsGet(gpm_metrics *out) {
    char name[64], word[64];
    if (out->version != 1) return VERSION_MISMATCH;
    if (!out->one || !out->two || !out->one->of || out->one->of != out->two->of) return INVALID_ARGUMENT;
    for (uint i = 0; i < out->count; i++) {
        snprintf(name, sizeof name, "gpm.%u", out->metrics[i].id);
        out->metrics[i].result = device_text(out->one->of, name, word, sizeof word);
        if (out->metrics[i].result == SUCCESS) out->metrics[i].value = atof(word);
    }
    return SUCCESS;
}
#endif

/* ---- processes: the two-call protocol ---- */

typedef struct { uint pid; ull memory; uint gi, ci; } process_v3;
ret nvmlDeviceGetComputeRunningProcesses_v3(device *d, uint *count, process_v3 *out) {
    char name[64], word[64];
    uint have = 0, room = *count;
    ret r = device_uint(d, "processes", &have);
    if (r != SUCCESS) return r;
    *count = have;
    if (have == 0) return SUCCESS;
    if (room < have || !out) return INSUFFICIENT_SIZE;
    for (uint i = 0; i < have; i++) {
        ull pid = 0, memory = ~0ULL;
        snprintf(name, sizeof name, "process.%u", i);
        if (device_text(d, name, word, sizeof word) == SUCCESS) sscanf(word, "%llu:%llu", &pid, &memory);
        out[i] = (process_v3){(uint)pid, memory, ~0u, ~0u};
    }
    return SUCCESS;
}
