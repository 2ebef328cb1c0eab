/* What a device is, and the modes it is in. */

API ret nvmlDeviceGetIndex(device *d, uint *out) {
    ENTER(nvmlDeviceGetIndex, d)
    if (!out) return INVALID_ARGUMENT;
    *out = d->index;
    return SUCCESS;
}
API ret nvmlDeviceGetMinorNumber(device *d, uint *out) {
    ENTER(nvmlDeviceGetMinorNumber, d)
    if (!out) return INVALID_ARGUMENT;
    const node *own = find(d, "minor_number");
    if (own) return give_uint(own, out);
    *out = d->index;
    return d->parent ? NOT_SUPPORTED : SUCCESS;
}
TEXT_CALL(nvmlDeviceGetName, "name")
TEXT_CALL(nvmlDeviceGetUUID, "uuid")
TEXT_CALL(nvmlDeviceGetSerial, "serial")
TEXT_CALL(nvmlDeviceGetVbiosVersion, "vbios_version")
TEXT_CALL(nvmlDeviceGetBoardPartNumber, "board_part")
TEXT_CALL(nvmlDeviceGetInforomImageVersion, "inforom_image_version")
API ret nvmlDeviceGetInforomVersion(device *d, uint object, char *out, uint size) {
    static const char *const names[] = {"oem", "ecc", "power"};
    ENTER(nvmlDeviceGetInforomVersion, d)
    return object > 2 ? INVALID_ARGUMENT : give_text(find_in(d, "inforom_version", names[object]), out, size);
}
API ret nvmlDeviceGetGspFirmwareVersion(device *d, char *out) { ENTER(nvmlDeviceGetGspFirmwareVersion, d) return get_text(d, "gsp_firmware_version", out, 64); }
API ret nvmlDeviceGetGspFirmwareMode(device *d, uint *enabled, uint *usual) {
    ENTER(nvmlDeviceGetGspFirmwareMode, d)
    if (!enabled || !usual) return INVALID_ARGUMENT;
    const node *version = find(d, "gsp_firmware_version");
    *enabled = *usual = version != NULL;
    return SUCCESS;
}
UINT_CALL(nvmlDeviceGetBrand, "brand")
UINT_CALL(nvmlDeviceGetArchitecture, "architecture")
UINT_CALL(nvmlDeviceGetBoardId, "board_id")
UINT_CALL(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
UINT_CALL(nvmlDeviceGetModuleId, "module_id")
UINT_CALL(nvmlDeviceGetNumGpuCores, "cores")
UINT_CALL(nvmlDeviceGetMemoryBusWidth, "memory_bus_width_bits")
UINT_CALL(nvmlDeviceGetBusType, "bus_type")
UINT_CALL(nvmlDeviceGetIrqNum, "irq")
UINT_CALL(nvmlDeviceGetNumaNodeId, "numa_node")
UINT_CALL(nvmlDeviceGetPersistenceMode, "persistence_mode")
UINT_CALL(nvmlDeviceGetComputeMode, "compute_mode")
UINT_CALL(nvmlDeviceGetDisplayMode, "display_mode")
UINT_CALL(nvmlDeviceGetDisplayActive, "display_active")
UINT_CALL(nvmlDeviceGetAccountingMode, "accounting_mode")
UINT_CALL(nvmlDeviceGetAccountingBufferSize, "accounting_buffer_size")
UINT_CALL(nvmlDeviceGetVirtualizationMode, "virtualization_mode")
UINT_CALL(nvmlDeviceGetHostVgpuMode, "host_vgpu_mode")
UINT_CALL(nvmlDeviceGetPowerManagementMode, "power_management_mode")

API ret nvmlDeviceGetCudaComputeCapability(device *d, int *major, int *minor) {
    ENTER(nvmlDeviceGetCudaComputeCapability, d)
    const node *n = find(d, "compute_capability");
    ret r = said(n);
    if (!major || !minor) return INVALID_ARGUMENT;
    return r != SUCCESS ? r : sscanf(text_or(n, ""), "%d.%d", major, minor) == 2 ? SUCCESS : UNKNOWN;
}
static ret two_modes(device *d, const char *current_key, const char *pending_key, uint *current, uint *pending) {
    if (!current || !pending) return INVALID_ARGUMENT;
    ret r = get_uint(d, current_key, current);
    if (r == SUCCESS && get_uint(d, pending_key, pending) != SUCCESS) *pending = *current;
    return r;
}
API ret nvmlDeviceGetEccMode(device *d, uint *current, uint *pending) {
    ENTER(nvmlDeviceGetEccMode, d) return two_modes(d, "ecc_mode", "ecc_mode_pending", current, pending);
}
API ret nvmlDeviceGetMigMode(device *d, uint *current, uint *pending) {
    ENTER(nvmlDeviceGetMigMode, d) return two_modes(d, "mig_mode", "mig_mode_pending", current, pending);
}
API ret nvmlDeviceGetAddressingMode(device *d, versioned_uint *out) {
    ENTER(nvmlDeviceGetAddressingMode, d)
    CHECK_VERSION(out, versioned_uint, 1);
    return get_uint(d, "addressing_mode", &out->value);
}
API ret nvmlDeviceGetPdi(device *d, pdi_v1 *out) {
    ENTER(nvmlDeviceGetPdi, d)
    CHECK_VERSION(out, pdi_v1, 1);
    return get_ull(d, "pdi", &out->value);
}
API ret nvmlDeviceGetC2cModeInfoV(device *d, c2c_mode_v1 *out) {
    ENTER(nvmlDeviceGetC2cModeInfoV, d) return out ? get_uint(d, "c2c_mode", &out->enabled) : INVALID_ARGUMENT;
}

/* An instance sits in its card's slot. */
static ret pci_of(const device *d, pci_info *out) {
    if (!out) return INVALID_ARGUMENT;
    const device *card = d->parent ? d->parent : d;
    memset(out, 0, sizeof *out);
    ret r = get_text(card, "bus_id", out->bus_id, sizeof out->bus_id);
    if (r != SUCCESS) return r;
    uint function = 0;
    if (sscanf(out->bus_id, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) return UNKNOWN;
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.%X", out->domain & 0xFFFF, out->bus & 0xFF, out->device & 0xFF, function & 0xF);
    out->pci_device_id = uint_or(card, "pci_device_id", 0);
    out->pci_sub_system_id = uint_or(card, "pci_sub_system_id", 0);
    return SUCCESS;
}
API ret nvmlDeviceGetPciInfo_v3(device *d, pci_info *out) { ENTER(nvmlDeviceGetPciInfo_v3, d) return pci_of(d, out); }
API ret nvmlDeviceGetPciInfoExt(device *d, pci_info_ext *out) {
    ENTER(nvmlDeviceGetPciInfoExt, d)
    CHECK_VERSION(out, pci_info_ext, 1);
    pci_info basic;
    ret r = pci_of(d, &basic);
    if (r != SUCCESS) return r;
    *out = (pci_info_ext){out->version, basic.domain, basic.bus, basic.device, basic.pci_device_id, basic.pci_sub_system_id, 3, 2, {0}};
    memcpy(out->bus_id, basic.bus_id, sizeof out->bus_id);
    return SUCCESS;
}

static void hex_bytes(const char *text, unsigned char *out, size_t size) { /* dashes of a UUID are skipped */
    for (size_t i = 0; i < size && *text;) {
        uint byte;
        if (*text == '-') text++;
        else if (sscanf(text, "%2x", &byte) == 1) { out[i++] = (unsigned char)byte; text += text[1] ? 2 : 1; }
        else break;
    }
}
static ret fabric_of(const device *d, fabric_v3 *out) {
    ret r = said(find(d, "fabric"));
    if (r != SUCCESS) return r;
    memset(out->cluster, 0, sizeof out->cluster);
    hex_bytes(text_or(find_in(d, "fabric", "cluster_uuid"), ""), out->cluster, sizeof out->cluster);
    out->status = (ret)whole(find_in(d, "fabric", "status"), SUCCESS);
    out->clique = (uint)whole(find_in(d, "fabric", "clique"), 0);
    out->state = (uint)whole(find_in(d, "fabric", "state"), 0);
    out->health = (uint)whole(find_in(d, "fabric", "health_mask"), 0);
    out->summary = (unsigned char)whole(find_in(d, "fabric", "health_summary"), 0);
    return SUCCESS;
}
API ret nvmlDeviceGetGpuFabricInfoV(device *d, fabric_v3 *out) {
    ENTER(nvmlDeviceGetGpuFabricInfoV, d)
    if (!out) return INVALID_ARGUMENT;
    fabric_v3 said_ = {0};
    if (out->version != VERSION(fabric_v2, 2) && out->version != VERSION(fabric_v3, 3)) return ARGUMENT_VERSION_MISMATCH;
    ret r = fabric_of(d, &said_);
    if (r != SUCCESS) return r;
    said_.version = out->version;
    memcpy(out, &said_, out->version == VERSION(fabric_v3, 3) ? sizeof(fabric_v3) : sizeof(fabric_v2));
    return SUCCESS;
}
API ret nvmlDeviceGetGpuFabricInfo(device *d, fabric_v1 *out) {
    ENTER(nvmlDeviceGetGpuFabricInfo, d)
    if (!out) return INVALID_ARGUMENT;
    fabric_v3 said_ = {0};
    ret r = fabric_of(d, &said_);
    if (r != SUCCESS) return r;
    memcpy(out->cluster, said_.cluster, sizeof out->cluster);
    out->status = said_.status;
    out->clique = said_.clique;
    out->state = said_.state;
    return SUCCESS;
}
API ret nvmlDeviceGetPlatformInfo(device *d, platform_v2 *out) {
    ENTER(nvmlDeviceGetPlatformInfo, d)
    CHECK_VERSION(out, platform_v2, 2);
    ret r = said(find(d, "platform"));
    if (r != SUCCESS) return r;
    memset(out->ib_guid, 0, sizeof *out - offsetof(platform_v2, ib_guid));
    hex_bytes(text_or(find_in(d, "platform", "ib_guid"), ""), (unsigned char *)out->ib_guid, sizeof out->ib_guid);
    strncpy(out->chassis_serial, text_or(find_in(d, "platform", "chassis_serial_number"), ""), sizeof out->chassis_serial - 1);
    out->slot = (unsigned char)whole(find_in(d, "platform", "slot_number"), 0);
    out->tray = (unsigned char)whole(find_in(d, "platform", "tray_index"), 0);
    out->host = (unsigned char)whole(find_in(d, "platform", "host_id"), 0);
    out->peer = (unsigned char)whole(find_in(d, "platform", "peer_type"), 0);
    out->module = (unsigned char)whole(find_in(d, "platform", "module_id"), 0);
    return SUCCESS;
}
