/* vGPU instances of a host: the list `vgpus` of a card, each with a number of its own that the calls take as a handle. */

static const node *vgpu_numbered(uint number) {
    for (uint i = 0; i < session.count; i++) {
        const node *list = session.gpu[i].node ? find(&session.gpu[i], "vgpus") : NULL;
        for (const node *n = list && list->kind == JSON_LIST ? list->child : NULL; n; n = n->next)
            if (whole(member(n, "id"), 0) == number) return n;
    }
    return NULL;
}
static const node *vgpu_typed(uint type) {
    for (uint i = 0; i < session.count; i++) {
        const node *list = session.gpu[i].node ? find(&session.gpu[i], "vgpus") : NULL;
        for (const node *n = list && list->kind == JSON_LIST ? list->child : NULL; n; n = n->next)
            if (whole(member(n, "type_id"), 0) == type) return n;
    }
    return NULL;
}
/* Only a host that cuts cards into vGPUs (virtualisation mode 3) has a list at all. */
static ret vgpu_list(const device *d, const node **list) {
    *list = find(d, "vgpus");
    ret r = *list ? said(*list) : SUCCESS;
    return r != SUCCESS ? r : !*list && uint_or(d, "virtualization_mode", 0) != 3 ? NOT_SUPPORTED : SUCCESS;
}
API ret nvmlDeviceGetActiveVgpus(device *d, uint *count, uint *out) {
    ENTER(nvmlDeviceGetActiveVgpus, d)
    const node *list;
    ret r = vgpu_list(d, &list);
    if (!count) return INVALID_ARGUMENT;
    if (r != SUCCESS) return r;
    uint room = *count;
    *count = list ? list->count : 0;
    if (!*count) return SUCCESS;
    if (room < *count || !out) return INSUFFICIENT_SIZE;
    for (const node *n = list->child; n; n = n->next) *out++ = (uint)whole(member(n, "id"), 0);
    return SUCCESS;
}
#define VGPU_UINT(name_, key_)                                        \
    API ret name_(uint vgpu, uint *out) {                             \
        ENTER_SYSTEM(name_)                                           \
        const node *n = vgpu_numbered(vgpu);                          \
        return n ? give_uint(present(member(n, key_)), out) : NOT_FOUND; \
    }
#define VGPU_TEXT(name_, key_)                                        \
    API ret name_(uint vgpu, char *out, uint size) {                  \
        ENTER_SYSTEM(name_)                                           \
        const node *n = vgpu_numbered(vgpu);                          \
        return n ? give_text(present(member(n, key_)), out, size) : NOT_FOUND; \
    }
VGPU_TEXT(nvmlVgpuInstanceGetUUID, "uuid")
VGPU_TEXT(nvmlVgpuInstanceGetVmDriverVersion, "vm_driver_version")
VGPU_UINT(nvmlVgpuInstanceGetType, "type_id")
VGPU_UINT(nvmlVgpuInstanceGetLicenseStatus, "licensed")
VGPU_UINT(nvmlVgpuInstanceGetFrameRateLimit, "frame_rate_limit")
VGPU_UINT(nvmlVgpuInstanceGetGpuInstanceId, "gi")
API ret nvmlVgpuInstanceGetVmID(uint vgpu, char *out, uint size, uint *kind) { /* kind 0: number of the domain, 1: UUID */
    ENTER_SYSTEM(nvmlVgpuInstanceGetVmID)
    const node *n = vgpu_numbered(vgpu);
    if (!kind) return INVALID_ARGUMENT;
    *kind = n ? (uint)whole(member(n, "vm_id_is_uuid"), 1) : 0;
    return n ? give_text(present(member(n, "vm_id")), out, size) : NOT_FOUND;
}
API ret nvmlVgpuInstanceGetFbUsage(uint vgpu, ull *out) {
    ENTER_SYSTEM(nvmlVgpuInstanceGetFbUsage)
    const node *n = vgpu_numbered(vgpu);
    return n ? give_ull(present(member(n, "memory_used_bytes")), out) : NOT_FOUND;
}
API ret nvmlVgpuInstanceGetLicenseInfo_v2(uint vgpu, license_info *out) {
    ENTER_SYSTEM(nvmlVgpuInstanceGetLicenseInfo_v2)
    const node *n = vgpu_numbered(vgpu);
    if (!n || !out) return n ? INVALID_ARGUMENT : NOT_FOUND;
    memset(out, 0, sizeof *out);
    out->licensed = (unsigned char)whole(member(n, "licensed"), 0);
    out->state = (uint)whole(member(n, "license_state"), out->licensed ? 5 : 4);
    return SUCCESS;
}
static ret type_text(uint type, const char *key, char *out, uint *size) {
    const node *n = vgpu_typed(type);
    if (!size || !n) return INVALID_ARGUMENT;
    ret r = give_text(present(member(n, key)), out, *size);
    if (r == SUCCESS || r == INSUFFICIENT_SIZE) *size = (uint)strlen(text_or(member(n, key), "")) + 1;
    return r;
}
API ret nvmlVgpuTypeGetName(uint type, char *out, uint *size) { ENTER_SYSTEM(nvmlVgpuTypeGetName) return type_text(type, "type_name", out, size); }
API ret nvmlVgpuTypeGetClass(uint type, char *out, uint *size) { ENTER_SYSTEM(nvmlVgpuTypeGetClass) return type_text(type, "type_class", out, size); }
API ret nvmlVgpuTypeGetFramebufferSize(uint type, ull *out) {
    ENTER_SYSTEM(nvmlVgpuTypeGetFramebufferSize)
    const node *n = vgpu_typed(type);
    return n ? give_ull(present(member(n, "memory_total_bytes")), out) : INVALID_ARGUMENT;
}
API ret nvmlDeviceGetVgpuInstancesUtilizationInfo(device *d, vgpu_uses_v1 *out) {
    ENTER(nvmlDeviceGetVgpuInstancesUtilizationInfo, d)
    CHECK_VERSION(out, vgpu_uses_v1, 1);
    const node *list;
    ret r = vgpu_list(d, &list);
    if (r != SUCCESS) return r;
    uint room = out->count;
    out->count = list ? list->count : 0;
    out->type = 1;
    if (!out->count) return SUCCESS;
    if (room < out->count || !out->list) return INSUFFICIENT_SIZE;
    vgpu_use_v1 *to = out->list;
    for (const node *n = list->child; n; n = n->next, to++) {
        *to = (vgpu_use_v1){.at_us = now_us(), .instance = (uint)whole(member(n, "id"), 0)};
        to->sm.u = percent(n, "sm_percent");
        to->memory.u = percent(n, "memory_percent");
        to->encoder.u = percent(n, "encoder_percent");
        to->decoder.u = percent(n, "decoder_percent");
    }
    out->after_us = now_us();
    return SUCCESS;
}
/* In a guest with a vGPU: the list `licensable_features` of `code`, `state` (1: licensed), `product` and `enabled`. */
API ret nvmlDeviceGetGridLicensableFeatures_v4(device *d, licensable_features_v4 *out) {
    ENTER(nvmlDeviceGetGridLicensableFeatures_v4, d)
    const node *list = find(d, "licensable_features");
    ret r = said(list);
    if (!out) return INVALID_ARGUMENT;
    if (r != SUCCESS) return r;
    memset(out, 0, sizeof *out);
    out->supported = list->count > 0;
    for (const node *n = list->child; n && out->count < 3; n = n->next) {
        licensable_feature_v4 *to = &out->list[out->count++];
        to->code = (uint)whole(member(n, "code"), 0);
        to->state = (uint)whole(member(n, "state"), 0);
        to->enabled = (uint)whole(member(n, "enabled"), 0);
        snprintf(to->product, sizeof to->product, "%s", text_or(member(n, "product"), ""));
    }
    return SUCCESS;
}
