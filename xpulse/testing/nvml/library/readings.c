/* Gauges and counters of the board: memory, utilisation, temperature, power, clocks, fans, PCIe. */

static ret memory_of(const device *d, memory_v2 *out) { /* free follows, unless the state says otherwise */
    ret r = get_ull(d, "memory_total_bytes", &out->total);
    if (r == SUCCESS) r = get_ull(d, "memory_used_bytes", &out->used);
    if (r == SUCCESS && get_ull(d, "memory_reserved_bytes", &out->reserved) != SUCCESS) out->reserved = 0;
    if (r == SUCCESS && get_ull(d, "memory_free_bytes", &out->free) != SUCCESS) {
        ull taken = out->used + out->reserved;
        out->free = out->total > taken ? out->total - taken : 0;
    }
    return r;
}
API ret nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *out) {
    ENTER(nvmlDeviceGetMemoryInfo_v2, d)
    CHECK_VERSION(out, memory_v2, 2);
    memory_v2 said_ = {.version = out->version};
    ret r = memory_of(d, &said_);
    if (r == SUCCESS) *out = said_;
    return r;
}
API ret nvmlDeviceGetMemoryInfo(device *d, memory_v1 *out) { /* the first version counts what is reserved as used */
    ENTER(nvmlDeviceGetMemoryInfo, d)
    if (!out) return INVALID_ARGUMENT;
    memory_v2 said_ = {0};
    ret r = memory_of(d, &said_);
    if (r == SUCCESS) *out = (memory_v1){said_.total, said_.free, said_.used + said_.reserved};
    return r;
}
static ret three(const device *d, const char *total, const char *used, memory_v1 *out) {
    if (!out) return INVALID_ARGUMENT;
    memory_v1 said_ = {0};
    ret r = get_ull(d, total, &said_.total);
    if (r == SUCCESS) r = get_ull(d, used, &said_.used);
    if (r != SUCCESS) return r;
    said_.free = said_.total > said_.used ? said_.total - said_.used : 0;
    *out = said_;
    return SUCCESS;
}
API ret nvmlDeviceGetBAR1MemoryInfo(device *d, memory_v1 *out) {
    ENTER(nvmlDeviceGetBAR1MemoryInfo, d) return three(d, "bar1_total_bytes", "bar1_used_bytes", out);
}
API ret nvmlDeviceGetConfComputeProtectedMemoryUsage(device *d, memory_v1 *out) {
    ENTER(nvmlDeviceGetConfComputeProtectedMemoryUsage, d) return three(d, "protected_total_bytes", "protected_used_bytes", out);
}

/* A card that is cut into instances has no utilisation of its own; nor does an instance. */
static bool under_mig(const device *d) { return d->parent || uint_or(d, "mig_mode", 0) == 1; }

API ret nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
    ENTER(nvmlDeviceGetUtilizationRates, d)
    if (!out) return INVALID_ARGUMENT;
    if (under_mig(d)) return NOT_SUPPORTED;
    ret r = get_uint(d, "utilization_percent", &out->gpu);
    if (r == SUCCESS && get_uint(d, "memory_utilization_percent", &out->memory) != SUCCESS) out->memory = 0;
    return r;
}
static ret engine(const device *d, const char *key, uint *out, uint *period_us) {
    if (!out || !period_us) return INVALID_ARGUMENT;
    *period_us = 167000;
    return under_mig(d) ? NOT_SUPPORTED : get_uint(d, key, out);
}
#define ENGINE_CALL(name_, key_) \
    API ret name_(device *d, uint *out, uint *period_us) { ENTER(name_, d) return engine(d, key_, out, period_us); }
ENGINE_CALL(nvmlDeviceGetEncoderUtilization, "encoder_percent")
ENGINE_CALL(nvmlDeviceGetDecoderUtilization, "decoder_percent")
ENGINE_CALL(nvmlDeviceGetJpgUtilization, "jpeg_percent")
ENGINE_CALL(nvmlDeviceGetOfaUtilization, "ofa_percent")
API ret nvmlDeviceGetEncoderStats(device *d, uint *sessions, uint *fps, uint *latency) {
    ENTER(nvmlDeviceGetEncoderStats, d)
    ret r = give_uint(find_in(d, "encoder_stats", "sessions"), sessions);
    if (r == SUCCESS) r = give_uint(find_in(d, "encoder_stats", "average_fps"), fps);
    return r == SUCCESS ? give_uint(find_in(d, "encoder_stats", "average_latency_us"), latency) : r;
}

API ret nvmlDeviceGetTemperature(device *d, uint sensor, uint *out) {
    ENTER(nvmlDeviceGetTemperature, d) return sensor ? INVALID_ARGUMENT : get_uint(d, "temperature_celsius", out);
}
API ret nvmlDeviceGetTemperatureV(device *d, temperature_v1 *out) {
    ENTER(nvmlDeviceGetTemperatureV, d)
    CHECK_VERSION(out, temperature_v1, 1);
    return out->sensor ? INVALID_ARGUMENT : get_uint(d, "temperature_celsius", (uint *)&out->temperature);
}
API ret nvmlDeviceGetMarginTemperature(device *d, margin_v1 *out) {
    ENTER(nvmlDeviceGetMarginTemperature, d)
    CHECK_VERSION(out, margin_v1, 1);
    return get_uint(d, "margin_celsius", (uint *)&out->margin);
}
API ret nvmlDeviceGetTemperatureThreshold(device *d, uint which, uint *out) {
    static const char *const names[] = {"shutdown_celsius",      "slowdown_celsius",         "memory_max_celsius",   "gpu_max_celsius",
                                        "acoustic_min_celsius",  "acoustic_current_celsius", "acoustic_max_celsius", "gps_current_celsius"};
    ENTER(nvmlDeviceGetTemperatureThreshold, d) return which > 7 ? INVALID_ARGUMENT : get_uint(d, names[which], out);
}

UINT_CALL(nvmlDeviceGetPowerUsage, "power_milliwatts")
UINT_CALL(nvmlDeviceGetEnforcedPowerLimit, "power_limit_milliwatts")
UINT_CALL(nvmlDeviceGetPowerManagementLimit, "power_limit_requested_milliwatts")
UINT_CALL(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_default_milliwatts")
API ret nvmlDeviceGetPowerManagementLimitConstraints(device *d, uint *low, uint *high) {
    ENTER(nvmlDeviceGetPowerManagementLimitConstraints, d)
    ret r = get_uint(d, "power_limit_min_milliwatts", low);
    return r == SUCCESS ? get_uint(d, "power_limit_max_milliwatts", high) : r;
}
ULL_CALL(nvmlDeviceGetTotalEnergyConsumption, "energy_millijoules")
UINT_CALL(nvmlDeviceGetPerformanceState, "performance_state")
UINT_CALL(nvmlDeviceGetPowerState, "performance_state")

static ret clock_of(const device *d, uint type, bool limit, uint *out) {
    static const char *const names[][2] = {{"graphics_clock_megahertz", "graphics_clock_max_megahertz"},
                                           {"sm_clock_megahertz", "sm_clock_max_megahertz"},
                                           {"memory_clock_megahertz", "memory_clock_max_megahertz"},
                                           {"video_clock_megahertz", "video_clock_max_megahertz"}};
    return type > 3 ? INVALID_ARGUMENT : get_uint(d, names[type][limit], out);
}
API ret nvmlDeviceGetClockInfo(device *d, uint type, uint *out) { ENTER(nvmlDeviceGetClockInfo, d) return clock_of(d, type, false, out); }
API ret nvmlDeviceGetMaxClockInfo(device *d, uint type, uint *out) { ENTER(nvmlDeviceGetMaxClockInfo, d) return clock_of(d, type, true, out); }
API ret nvmlDeviceGetClock(device *d, uint type, uint id, uint *out) { /* id 0: current, 3: the customer's most */
    ENTER(nvmlDeviceGetClock, d) return id == 0 || id == 3 ? clock_of(d, type, id == 3, out) : NOT_SUPPORTED;
}
API ret nvmlDeviceGetMaxCustomerBoostClock(device *d, uint type, uint *out) {
    ENTER(nvmlDeviceGetMaxCustomerBoostClock, d) return clock_of(d, type, true, out);
}
ULL_CALL(nvmlDeviceGetCurrentClocksEventReasons, "clock_reasons")
ULL_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, "clock_reasons")
ULL_CALL(nvmlDeviceGetSupportedClocksEventReasons, "clock_reasons_supported")
ULL_CALL(nvmlDeviceGetSupportedClocksThrottleReasons, "clock_reasons_supported")

API ret nvmlDeviceGetViolationStatus(device *d, uint policy, violation_time *out) {
    static const char *const names[] = {"violation_power_nanoseconds",           "violation_thermal_nanoseconds",
                                        "violation_sync_boost_nanoseconds",      "violation_board_limit_nanoseconds",
                                        "violation_low_utilization_nanoseconds", "violation_reliability_nanoseconds"};
    ENTER(nvmlDeviceGetViolationStatus, d)
    if (!out || policy > 5) return policy == 10 || policy == 11 ? NOT_SUPPORTED : INVALID_ARGUMENT;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    out->reference = (ull)t.tv_sec * 1000000 + (ull)t.tv_nsec / 1000;
    return get_ull(d, names[policy], &out->violation);
}

UINT_CALL(nvmlDeviceGetFanSpeed, "fan_percent")
API ret nvmlDeviceGetNumFans(device *d, uint *out) {
    ENTER(nvmlDeviceGetNumFans, d)
    if (!out) return INVALID_ARGUMENT;
    *out = uint_or(d, "fans", said(find(d, "fan_percent")) == SUCCESS);
    return SUCCESS;
}
API ret nvmlDeviceGetFanSpeed_v2(device *d, uint fan, uint *out) {
    ENTER(nvmlDeviceGetFanSpeed_v2, d) return fan >= uint_or(d, "fans", 1) ? INVALID_ARGUMENT : get_uint(d, "fan_percent", out);
}
API ret nvmlDeviceGetFanSpeedRPM(device *d, fan_speed_v1 *out) {
    ENTER(nvmlDeviceGetFanSpeedRPM, d)
    CHECK_VERSION(out, fan_speed_v1, 1);
    return get_uint(d, "fan_rpm", &out->speed);
}

UINT_CALL(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
UINT_CALL(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
UINT_CALL(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_generation_device_max")
UINT_CALL(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
UINT_CALL(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
UINT_CALL(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
UINT_CALL(nvmlDeviceGetPcieSpeed, "pcie_speed_megatransfers")
UINT_CALL(nvmlDeviceGetPcieLinkMaxSpeed, "pcie_link_max_speed")
/* The real one counts for 20 ms and blocks as long; `pcie_window_us` at the top of the state says how long this one does. */
static uint64_t pcie_window_us(void) {
    pthread_mutex_lock(&lock);
    refresh();
    uint64_t found = whole(member(file.root, "pcie_window_us"), 20000);
    pthread_mutex_unlock(&lock);
    return found;
}
API ret nvmlDeviceGetPcieThroughput(device *d, uint counter, uint *out) {
    ENTER_FOR(nvmlDeviceGetPcieThroughput, d, A_DEVICE, pcie_window_us())
    return counter > 1 ? INVALID_ARGUMENT : get_uint(d, counter ? "pcie_rx_kilobytes_per_second" : "pcie_tx_kilobytes_per_second", out);
}
