/* Who uses a device: the list `processes`, with `type` compute (the default), graphics or mps. */

static const char *const KINDS[] = {"compute", "graphics", "mps"};

static const node *processes_of(const device *d, ret *r) {
    const node *list = find(d->parent ? d->parent : d, "processes");
    *r = list ? said(list) : SUCCESS; /* nothing said: nobody */
    if (*r == SUCCESS && list && list->kind != JSON_LIST) *r = UNKNOWN;
    return list ? list->child : NULL;
}
static uint id_of(const node *n, const char *key) { return (uint)whole(present(member(n, key)), 0xFFFFFFFF); }

/* An instance lists those of its own; its card lists all. */
static bool listed(const device *d, const node *process, const char *kind) {
    if (kind && strcmp(text_or(member(process, "type"), "compute"), kind)) return false;
    return !d->parent || (id_of(process, "gi") == id_of(d->node, "gi") && (id_of(process, "ci") == id_of(d->node, "ci") || id_of(process, "ci") == 0xFFFFFFFF));
}
static ull memory_used(const node *process) { return whole(present(member(process, "memory_bytes")), ~0ULL); } /* not available */

/* The fault `process_stride_bytes`: the entries stand as another version of the structure would have them. */
static void put(char *to, size_t room, uint i, uint stride, const node *n) {
    unsigned char entry[64] = {0};
    process_info p = {(uint)whole(member(n, "pid"), 0), memory_used(n), id_of(n, "gi"), id_of(n, "ci")};
    memcpy(entry, &p, sizeof p);
    size_t at = (size_t)i * stride;
    if (at < room) memcpy(to + at, entry, at + stride <= room ? stride : room - at);
}
static ret process_list(const device *d, const char *kind, uint *count, process_info *out) {
    ret r;
    const node *first = processes_of(d, &r);
    if (!count) return INVALID_ARGUMENT;
    if (r != SUCCESS) return r;
    uint have = 0, room = *count, stride = uint_or(d->parent ? d->parent : d, "process_stride_bytes", sizeof *out);
    if (stride < 16 || stride > 64) return UNKNOWN;
    for (const node *n = first; n; n = n->next) have += listed(d, n, kind);
    *count = have;
    if (!have) return SUCCESS;
    if (room < have || !out) return INSUFFICIENT_SIZE;
    uint i = 0;
    for (const node *n = first; n; n = n->next)
        if (listed(d, n, kind)) put((char *)out, room * sizeof *out, i++, stride, n);
    return SUCCESS;
}
#define PROCESS_CALL(name_, kind_) \
    API ret name_(device *d, uint *count, process_info *out) { ENTER(name_, d) return process_list(d, KINDS[kind_], count, out); }
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, 0)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, 0)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, 1)
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)

API ret nvmlDeviceGetRunningProcessDetailList(device *d, process_details_v1 *out) { /* mode 0 compute, 1 graphics, 2 MPS */
    ENTER(nvmlDeviceGetRunningProcessDetailList, d)
    CHECK_VERSION(out, process_details_v1, 1);
    if (out->mode > 2) return INVALID_ARGUMENT;
    ret r;
    const node *first = processes_of(d, &r);
    if (r != SUCCESS) return r;
    uint have = 0, room = out->count;
    for (const node *n = first; n; n = n->next) have += listed(d, n, KINDS[out->mode]);
    out->count = have;
    if (!have) return SUCCESS;
    if (room < have || !out->list) return INSUFFICIENT_SIZE;
    process_detail_v1 *to = out->list;
    for (const node *n = first; n; n = n->next)
        if (listed(d, n, KINDS[out->mode]))
            *to++ = (process_detail_v1){(uint)whole(member(n, "pid"), 0), memory_used(n), id_of(n, "gi"), id_of(n, "ci"), whole(present(member(n, "protected_bytes")), 0)};
    return SUCCESS;
}

/* ---- utilisation by process; the driver keeps samples of those that did something ---- */

static ull now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (ull)t.tv_sec * 1000000 + (ull)t.tv_nsec / 1000;
}
static bool sampled_process(const device *d, const node *n) { return listed(d, n, NULL) && present(member(n, "sm_percent")); }
static uint percent(const node *n, const char *key) { return (uint)whole(present(member(n, key)), 0); }

static uint sampled_count(const device *d, const node *first) {
    uint have = 0;
    for (const node *n = first; n; n = n->next) have += sampled_process(d, n);
    return have;
}

/* `process_utilization_empty`: room is asked for and nothing given, as this call does on Blackwell. */
API ret nvmlDeviceGetProcessUtilization(device *d, process_sample *out, uint *count, ull after_us) {
    ENTER(nvmlDeviceGetProcessUtilization, d)
    ret r;
    const node *first = processes_of(d, &r);
    if (!count) return INVALID_ARGUMENT;
    if (under_mig(d)) return NOT_SUPPORTED;
    if (r != SUCCESS) return r;
    bool empty = uint_or(d, "process_utilization_empty", 0);
    uint have = sampled_count(d, first), room = *count;
    ull at_us = now_us();
    if (!empty && (!have || after_us >= at_us)) return NOT_FOUND;
    *count = have ? have : 1;
    if (!out || room < *count) return INSUFFICIENT_SIZE;
    *count = empty ? 0 : have;
    for (const node *n = first; n && !empty; n = n->next)
        if (sampled_process(d, n))
            *out++ = (process_sample){(uint)whole(member(n, "pid"), 0), at_us, percent(n, "sm_percent"), percent(n, "memory_percent"),
                                      percent(n, "encoder_percent"), percent(n, "decoder_percent")};
    return SUCCESS;
}
API ret nvmlDeviceGetProcessesUtilizationInfo(device *d, process_uses_v1 *out) {
    ENTER(nvmlDeviceGetProcessesUtilizationInfo, d)
    CHECK_VERSION(out, process_uses_v1, 1);
    ret r;
    const node *first = processes_of(d, &r);
    if (under_mig(d)) return NOT_SUPPORTED;
    if (r != SUCCESS) return r;
    uint have = sampled_count(d, first), room = out->count;
    ull at_us = now_us();
    if (!have || out->after_us >= at_us) return NOT_FOUND;
    out->count = have;
    if (!out->list || room < have) return INSUFFICIENT_SIZE;
    process_use_v1 *to = out->list;
    for (const node *n = first; n; n = n->next)
        if (sampled_process(d, n))
            *to++ = (process_use_v1){at_us, (uint)whole(member(n, "pid"), 0), percent(n, "sm_percent"), percent(n, "memory_percent"),
                                     percent(n, "encoder_percent"), percent(n, "decoder_percent"), percent(n, "jpeg_percent"), percent(n, "ofa_percent")};
    out->after_us = at_us;
    return SUCCESS;
}
