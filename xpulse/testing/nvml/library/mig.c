/* MIG instances: the list `mig.instances` of a card. Each has the `index` it is found at (there may be holes), `uuid`, `gi`, `ci`. */

static const node *instances_of(const device *d) {
    const node *list = uint_or(d, "mig_mode", 0) == 1 ? member(member(d->node, "mig"), "instances") : NULL;
    return list ? list->child : NULL;
}
static const node *instance_of_gi(const device *d, uint gi) {
    for (const node *n = instances_of(d); n; n = n->next)
        if (id_of(n, "gi") == gi) return n;
    return NULL;
}
/* The same instance has the same handle as long as the session lasts. */
static ret mig_handle(device *parent, const node *instance, device **out) {
    const char *uuid = text_or(member(instance, "uuid"), "");
    device *unused = NULL;
    for (uint i = 0; i < MAX_MIG_HANDLES; i++) {
        device *d = &session.mig[i];
        if (d->parent == parent && d->node && !strcmp(d->uuid, uuid)) {
            *out = d;
            return SUCCESS;
        }
        if (!unused && (!d->parent || (!d->node && i > MAX_MIG_HANDLES / 2))) unused = d;
    }
    if (!unused) return INSUFFICIENT_RESOURCES;
    *unused = (device){.parent = parent, .node = instance, .symbols = parent->symbols, .index = (uint)whole(member(instance, "index"), 0)};
    snprintf(unused->uuid, sizeof unused->uuid, "%s", uuid);
    *out = unused;
    return SUCCESS;
}

API ret nvmlDeviceGetMaxMigDeviceCount(device *d, uint *out) {
    ENTER(nvmlDeviceGetMaxMigDeviceCount, d)
    if (!out) return INVALID_ARGUMENT;
    *out = (uint)whole(find_in(d, "mig", "max"), 0);
    return SUCCESS;
}
API ret nvmlDeviceGetMigDeviceHandleByIndex(device *d, uint index, device **out) {
    ENTER(nvmlDeviceGetMigDeviceHandleByIndex, d)
    if (!out || d->parent || index >= (uint)whole(find_in(d, "mig", "max"), 0)) return INVALID_ARGUMENT;
    if (uint_or(d, "mig_mode", 0) != 1) return NOT_SUPPORTED;
    for (const node *n = instances_of(d); n; n = n->next)
        if (whole(member(n, "index"), ~0ULL) == index) return mig_handle(d, n, out);
    return NOT_FOUND;
}
API ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *d, device **out) {
    ENTER(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, d)
    if (!out || !d->parent) return INVALID_ARGUMENT;
    *out = d->parent;
    return SUCCESS;
}
API ret nvmlDeviceIsMigDeviceHandle(device *d, uint *out) {
    ENTER(nvmlDeviceIsMigDeviceHandle, d)
    if (!out) return INVALID_ARGUMENT;
    *out = d->parent != NULL;
    return SUCCESS;
}
API ret nvmlDeviceGetGpuInstanceId(device *d, uint *out) { ENTER(nvmlDeviceGetGpuInstanceId, d) return d->parent ? get_uint(d, "gi", out) : NOT_SUPPORTED; }
API ret nvmlDeviceGetComputeInstanceId(device *d, uint *out) { ENTER(nvmlDeviceGetComputeInstanceId, d) return d->parent ? get_uint(d, "ci", out) : NOT_SUPPORTED; }
API ret nvmlDeviceGetAttributes_v2(device *d, attributes_v2 *out) {
    ENTER(nvmlDeviceGetAttributes_v2, d)
    if (!out) return INVALID_ARGUMENT;
    if (!d->parent) return NOT_SUPPORTED;
    ret r = said(find(d, "attributes"));
    if (r != SUCCESS) return r;
    uint *const places[] = {&out->multiprocessors, &out->copy_engines, &out->decoders, &out->encoders, &out->jpegs, &out->ofas, &out->gpu_slices, &out->compute_slices};
    static const char *const names[] = {"multiprocessors", "copy_engines", "decoders", "encoders", "jpegs", "ofas", "gpu_slices", "compute_slices"};
    for (int i = 0; i < 8; i++) *places[i] = (uint)whole(find_in(d, "attributes", names[i]), 0);
    out->memory_mib = whole(find_in(d, "attributes", "memory_mebibytes"), 0);
    return SUCCESS;
}
