/* GPM: two samples of one device or instance, and the metrics between them, which are the group `gpm` by metric number. */

API ret nvmlGpmQueryDeviceSupport(device *d, gpm_support *out) {
    ENTER(nvmlGpmQueryDeviceSupport, d)
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 1) return ARGUMENT_VERSION_MISMATCH;
    out->supported = uint_or(d->parent ? d->parent : d, "gpm_supported", 0);
    return SUCCESS;
}
API ret nvmlGpmSampleAlloc(gpm_sample **out) {
    ENTER_SYSTEM(nvmlGpmSampleAlloc)
    if (!out) return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : INSUFFICIENT_RESOURCES;
}
API ret nvmlGpmSampleFree(gpm_sample *sample) {
    ENTER_FOR(nvmlGpmSampleFree, NULL, NO_SESSION, 0)
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    return SUCCESS;
}
API ret nvmlGpmSampleGet(device *d, gpm_sample *sample) {
    ENTER(nvmlGpmSampleGet, d)
    if (!sample) return INVALID_ARGUMENT;
    if (!uint_or(d, "gpm_supported", 0) || under_mig(d)) return NOT_SUPPORTED;
    *sample = (gpm_sample){d, 0xFFFFFFFF, true};
    return SUCCESS;
}
static const node *instance_of_gi(const device *d, uint gi);
API ret nvmlGpmMigSampleGet(device *d, uint gi, gpm_sample *sample) {
    ENTER(nvmlGpmMigSampleGet, d)
    if (!sample || d->parent) return INVALID_ARGUMENT;
    if (!uint_or(d, "gpm_supported", 0)) return NOT_SUPPORTED;
    if (!instance_of_gi(d, gi)) return NOT_FOUND;
    *sample = (gpm_sample){d, gi, true};
    return SUCCESS;
}
API ret nvmlGpmMetricsGet(gpm_metrics *out) {
    ENTER_SYSTEM(nvmlGpmMetricsGet)
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 1) return ARGUMENT_VERSION_MISMATCH;
    const gpm_sample *one = out->one, *two = out->two;
    if (!one || !two || !one->taken || !two->taken || one->of != two->of || one->gi != two->gi || out->count > 477) return INVALID_ARGUMENT;
    const device *d = one->of;
    if (!d->node) return GPU_IS_LOST;
    const node *instance = one->gi == 0xFFFFFFFF ? NULL : instance_of_gi(d, one->gi);
    if (one->gi != 0xFFFFFFFF && !instance) return NOT_FOUND;
    for (uint i = 0; i < out->count; i++) {
        gpm_metric *m = &out->metrics[i];
        char key[16];
        snprintf(key, sizeof key, "%u", m->id);
        const node *n = instance ? present(in_group(instance, "gpm", key)) : find_in(d, "gpm", key);
        m->result = said(n);
        m->value = m->result == SUCCESS ? n->number : 0;
        m->short_name = m->long_name = m->unit = NULL;
    }
    return SUCCESS;
}
