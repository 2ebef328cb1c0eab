/* ECC, SRAM, remapped rows, retired pages, repairs. */

API ret nvmlDeviceGetTotalEccErrors(device *d, uint error, uint counter, ull *out) {
    static const char *const names[2][2] = {{"ecc_corrected_volatile", "ecc_corrected_aggregate"},
                                            {"ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"}};
    ENTER(nvmlDeviceGetTotalEccErrors, d) return error > 1 || counter > 1 ? INVALID_ARGUMENT : get_ull(d, names[error][counter], out);
}
/* In the group `ecc_errors`, named as corrected.volatile.dram. */
API ret nvmlDeviceGetMemoryErrorCounter(device *d, uint error, uint counter, uint location, ull *out) {
    static const char *const places[] = {"l1", "l2", "dram", "register_file", "texture", "shared", "cbu", "sram"};
    ENTER(nvmlDeviceGetMemoryErrorCounter, d)
    char key[64];
    if (error > 1 || counter > 1 || location > 7) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "%scorrected.%s.%s", error ? "un" : "", counter ? "aggregate" : "volatile", places[location]);
    return give_ull(find_in(d, "ecc_errors", key), out);
}
API ret nvmlDeviceGetSramEccErrorStatus(device *d, sram_status_v1 *out) {
    ENTER(nvmlDeviceGetSramEccErrorStatus, d)
    CHECK_VERSION(out, sram_status_v1, 1);
    const node *group = find(d, "sram");
    ret r = said(group);
    if (r != SUCCESS) return r;
#define FROM_GROUP(field_) out->field_ = whole(find_in(d, "sram", #field_), 0)
    FROM_GROUP(aggregate_parity);
    FROM_GROUP(aggregate_secded);
    FROM_GROUP(aggregate_corrected);
    FROM_GROUP(volatile_parity);
    FROM_GROUP(volatile_secded);
    FROM_GROUP(volatile_corrected);
    FROM_GROUP(l2);
    FROM_GROUP(sm);
    FROM_GROUP(pcie);
    FROM_GROUP(mcu);
    FROM_GROUP(other);
    FROM_GROUP(threshold_exceeded);
    return SUCCESS;
}

API ret nvmlDeviceGetRemappedRows(device *d, uint *correctable, uint *uncorrectable, uint *pending, uint *failed) {
    ENTER(nvmlDeviceGetRemappedRows, d)
    ret r = get_uint(d, "remapped_correctable", correctable);
    if (r == SUCCESS) r = get_uint(d, "remapped_uncorrectable", uncorrectable);
    if (r == SUCCESS) r = get_uint(d, "remapped_pending", pending);
    return r == SUCCESS ? get_uint(d, "remapped_failed", failed) : r;
}
API ret nvmlDeviceGetRemappedRows_v2(device *d, remapped_v2 *out) {
    ENTER(nvmlDeviceGetRemappedRows_v2, d)
    if (!out) return INVALID_ARGUMENT;
    ret r = get_uint(d, "remapped_correctable", &out->corrected);
    if (r == SUCCESS) r = get_uint(d, "remapped_uncorrectable", &out->uncorrected);
    if (r != SUCCESS) return r;
    out->corrected_inactive = uint_or(d, "remapped_correctable_inactive", 0);
    out->uncorrected_inactive = uint_or(d, "remapped_uncorrectable_inactive", 0);
    out->pending = uint_or(d, "remapped_pending", 0);
    out->failed = uint_or(d, "remapped_failed", 0);
    return SUCCESS;
}
API ret nvmlDeviceGetRowRemapperHistogram(device *d, remap_histogram *out) {
    ENTER(nvmlDeviceGetRowRemapperHistogram, d)
    if (!out) return INVALID_ARGUMENT;
    ret r = said(find(d, "remap_histogram"));
    if (r != SUCCESS) return r;
    uint *const places[] = {&out->max, &out->high, &out->partial, &out->low, &out->none};
    static const char *const names[] = {"max", "high", "partial", "low", "none"};
    for (int i = 0; i < 5; i++) *places[i] = (uint)whole(find_in(d, "remap_histogram", names[i]), 0);
    return SUCCESS;
}

/* Lists of {"address": …, "at": seconds} under retired_pages.single_bit and .double_bit; cause 0 and 1. */
static ret retired(const device *d, uint cause, uint *count, ull *addresses, ull *times) {
    if (!count || cause > 1) return INVALID_ARGUMENT;
    const node *list = find_in(d, "retired_pages", cause ? "double_bit" : "single_bit");
    ret r = said(list);
    if (r != SUCCESS) return r;
    uint room = *count;
    *count = list->count;
    if (!list->count) return SUCCESS;
    if (room < list->count || !addresses) return INSUFFICIENT_SIZE;
    uint i = 0;
    for (const node *n = list->child; n; n = n->next, i++) {
        addresses[i] = number_of(member(n, "address"));
        if (times) times[i] = number_of(member(n, "at"));
    }
    return SUCCESS;
}
API ret nvmlDeviceGetRetiredPages(device *d, uint cause, uint *count, ull *addresses) {
    ENTER(nvmlDeviceGetRetiredPages, d) return retired(d, cause, count, addresses, NULL);
}
API ret nvmlDeviceGetRetiredPages_v2(device *d, uint cause, uint *count, ull *addresses, ull *times) {
    ENTER(nvmlDeviceGetRetiredPages_v2, d) return retired(d, cause, count, addresses, times);
}
API ret nvmlDeviceGetRetiredPagesPendingStatus(device *d, uint *out) {
    ENTER(nvmlDeviceGetRetiredPagesPendingStatus, d) return give_uint(find_in(d, "retired_pages", "pending"), out);
}

API ret nvmlDeviceGetRepairStatus(device *d, repair_v1 *out) {
    ENTER(nvmlDeviceGetRepairStatus, d)
    CHECK_VERSION(out, repair_v1, 1);
    ret r = get_uint(d, "channel_repair_pending", &out->channel);
    return r == SUCCESS ? get_uint(d, "tpc_repair_pending", &out->tpc) : r;
}
API ret nvmlDeviceGetUnrepairableMemoryFlag_v1(device *d, unrepairable_v1 *out) {
    ENTER(nvmlDeviceGetUnrepairableMemoryFlag_v1, d)
    CHECK_VERSION(out, unrepairable_v1, 1);
    return get_uint(d, "unrepairable_memory", &out->unrepairable);
}
