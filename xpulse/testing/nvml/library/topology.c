/* How devices are joined: the group `topology` has the level to other cards by their bus id, and `level` for the rest. */

static uint level_between(const device *one, const device *two) { /* 0 same board, 10 and 20 bridges, 30 host bridge, 40 node, 50 system */
    const node *own = find_in(one, "topology", two->bus_id);
    if (!own) own = find_in(two, "topology", one->bus_id);
    return (uint)whole(own ? own : find_in(one, "topology", "level"), 50);
}
API ret nvmlDeviceGetTopologyCommonAncestor(device *one, device *two, uint *out) {
    ENTER(nvmlDeviceGetTopologyCommonAncestor, one)
    if (!out || !is_handle(two) || one->parent || two->parent) return INVALID_ARGUMENT;
    if (!two->node) return GPU_IS_LOST;
    *out = one == two ? 0 : level_between(one, two);
    return SUCCESS;
}
/* Both calls of this one succeed: the first says how many. */
API ret nvmlDeviceGetTopologyNearestGpus(device *d, uint level, uint *count, device **out) {
    ENTER(nvmlDeviceGetTopologyNearestGpus, d)
    if (!count || d->parent) return INVALID_ARGUMENT;
    uint room = out ? *count : 0, have = 0;
    for (uint i = 0; i < session.count; i++) {
        device *other = &session.gpu[i];
        if (other == d || !other->node || level_between(d, other) > level) continue;
        if (have < room) out[have] = other;
        have++;
    }
    *count = out && have > room ? room : have;
    return SUCCESS;
}
API ret nvmlDeviceGetP2PStatus(device *one, device *two, uint kind, uint *out) {
    ENTER(nvmlDeviceGetP2PStatus, one)
    if (!out || !is_handle(two) || kind > 4) return INVALID_ARGUMENT;
    *out = (uint)whole(find_in(one, "topology", "p2p_status"), 0);
    return SUCCESS;
}

/* `cpu_affinity` is a list of 64-bit words, the lowest first. */
static ret affinity(const device *d, uint size, unsigned long *out) {
    const node *list = find(d->parent ? d->parent : d, "cpu_affinity");
    ret r = said(list);
    if (!out || !size) return INVALID_ARGUMENT;
    if (r != SUCCESS) return r;
    if (list->count > size) return INSUFFICIENT_SIZE;
    for (uint i = 0; i < size; i++) out[i] = (unsigned long)whole(item(list, i), 0);
    return SUCCESS;
}
API ret nvmlDeviceGetCpuAffinity(device *d, uint size, unsigned long *out) { ENTER(nvmlDeviceGetCpuAffinity, d) return affinity(d, size, out); }
API ret nvmlDeviceGetCpuAffinityWithinScope(device *d, uint size, unsigned long *out, uint scope) {
    ENTER(nvmlDeviceGetCpuAffinityWithinScope, d) return scope > 1 ? INVALID_ARGUMENT : affinity(d, size, out);
}
API ret nvmlDeviceGetMemoryAffinity(device *d, uint size, unsigned long *out, uint scope) {
    ENTER(nvmlDeviceGetMemoryAffinity, d)
    uint nearest;
    ret r = get_uint(d->parent ? d->parent : d, "numa_affinity", &nearest);
    if (!out || !size || scope > 1) return INVALID_ARGUMENT;
    if (r != SUCCESS) return r;
    memset(out, 0, size * sizeof *out);
    if (nearest / 64 < size) out[nearest / 64] = 1UL << nearest % 64;
    return SUCCESS;
}
API ret nvmlDeviceOnSameBoard(device *one, device *two, int *out) {
    ENTER(nvmlDeviceOnSameBoard, one)
    if (!out || !is_handle(two)) return INVALID_ARGUMENT;
    *out = one == two || level_between(one, two) == 0;
    return SUCCESS;
}
