/* NVLink by link: the group `nvlink` has `count`, what holds for `each` link, and what differs for one, by its number. */

enum { MAX_LINKS = 36, LINKS_OF_OLD = 18 };

static uint link_count(const device *d) { return (uint)whole(find_in(d, "nvlink", "count"), 0); }

static const node *link_says(const device *d, uint link, const char *key) {
    char number[16];
    snprintf(number, sizeof number, "%u", link);
    const node *own = present(member(in_group(d->node, "nvlink", number), key));
    if (!own) own = present(member(in_group(file.defaults, "nvlink", number), key));
    if (!own) own = present(member(in_group(d->node, "nvlink", "each"), key));
    return own ? own : present(member(in_group(file.defaults, "nvlink", "each"), key));
}

/* A card in MIG mode answers nothing about its links; a link beyond the card's is not supported, beyond any card's not an argument. */
static ret link_ready(const device *d, uint link) {
    if (under_mig(d)) return NOT_SUPPORTED;
    ret r = said(find(d, "nvlink"));
    if (r != SUCCESS) return r;
    r = said(find_in(d, "nvlink", "count"));
    if (r != SUCCESS) return r;
    return link < link_count(d) ? SUCCESS : link < LINKS_OF_OLD ? NOT_SUPPORTED : INVALID_ARGUMENT;
}
static ret link_uint(const device *d, uint link, const char *key, uint *out) {
    ret r = link_ready(d, link);
    return r == SUCCESS ? give_uint(link_says(d, link, key), out) : r;
}
API ret nvmlDeviceGetNvLinkState(device *d, uint link, uint *out) { ENTER(nvmlDeviceGetNvLinkState, d) return link_uint(d, link, "active", out); }
API ret nvmlDeviceGetNvLinkVersion(device *d, uint link, uint *out) { ENTER(nvmlDeviceGetNvLinkVersion, d) return link_uint(d, link, "version", out); }
API ret nvmlDeviceGetNvLinkRemoteDeviceType(device *d, uint link, uint *out) {
    ENTER(nvmlDeviceGetNvLinkRemoteDeviceType, d) return link_uint(d, link, "remote_type", out);
}
API ret nvmlDeviceGetNvLinkCapability(device *d, uint link, uint capability, uint *out) { /* P2P, sysmem, atomics, SLI bridge, valid */
    ENTER(nvmlDeviceGetNvLinkCapability, d)
    if (!out || capability > 5) return INVALID_ARGUMENT;
    ret r = link_ready(d, link);
    if (r == SUCCESS) *out = capability != 4;
    return r;
}
API ret nvmlDeviceGetNvLinkErrorCounter(device *d, uint link, uint counter, ull *out) {
    static const char *const names[] = {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"};
    ENTER(nvmlDeviceGetNvLinkErrorCounter, d)
    if (counter > 4) return INVALID_ARGUMENT;
    ret r = link_ready(d, link);
    return r == SUCCESS ? give_ull(link_says(d, link, names[counter]), out) : r;
}
API ret nvmlDeviceGetNvLinkRemotePciInfo_v2(device *d, uint link, pci_info *out) {
    ENTER(nvmlDeviceGetNvLinkRemotePciInfo_v2, d)
    if (!out) return INVALID_ARGUMENT;
    ret r = link_ready(d, link);
    if (r != SUCCESS) return r;
    memset(out, 0, sizeof *out);
    r = give_text(link_says(d, link, "remote_bus_id"), out->bus_id, sizeof out->bus_id);
    uint function = 0;
    if (r == SUCCESS && sscanf(out->bus_id, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) return UNKNOWN;
    if (r == SUCCESS) snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.%X", out->domain & 0xFFFF, out->bus & 0xFF, out->device & 0xFF, function & 0xF);
    return r;
}
