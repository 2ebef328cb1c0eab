/* Sessions with the driver, what belongs to no device, and finding devices. */

static void end_event_sets(void);

static ret start_session(void) {
    ret r = code_of(member(file.root, "init_error"));
    if (r != SUCCESS) return r;
    if (session.opened && session.driver_load == file.driver_load) {
        session.opened++;
        return SUCCESS;
    }
    session.opened = session.opened ? session.opened : 1;
    session.driver_load = file.driver_load;
    session.count = 0;
    session.starts++;
    memset(session.mig, 0, sizeof session.mig);
    end_event_sets();
    for (const node *n = file.gpus ? file.gpus->child : NULL; n && session.count < MAX_GPUS; n = n->next) {
        if (whole(member(n, "unplugged"), 0)) continue;
        device *d = &session.gpu[session.count];
        *d = (device){.index = session.count++};
        snprintf(d->uuid, sizeof d->uuid, "%s", text_or(member(n, "uuid"), ""));
        snprintf(d->bus_id, sizeof d->bus_id, "%s", text_or(member(n, "bus_id"), ""));
    }
    find_devices();
    return SUCCESS;
}
API ret nvmlInitWithFlags(uint flags) { (void)flags; ENTER_FOR(nvmlInitWithFlags, NULL, NO_SESSION, 0) return start_session(); }
API ret nvmlInit_v2(void) { ENTER_FOR(nvmlInit_v2, NULL, NO_SESSION, 0) return start_session(); }
API ret nvmlInit(void) { ENTER_FOR(nvmlInit, NULL, NO_SESSION, 0) return start_session(); }

/* Works whatever the driver does: a session can always be ended. */
API ret nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    ret r = session.opened ? SUCCESS : UNINITIALIZED;
    if (session.opened) session.opened--;
    pthread_mutex_unlock(&lock);
    return r;
}

API const char *nvmlErrorString(ret r) {
    switch (r) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

API ret nvmlSystemGetDriverVersion(char *out, uint size) {
    ENTER_SYSTEM(nvmlSystemGetDriverVersion) return give_text(present(member(file.root, "driver_version")), out, size);
}
API ret nvmlSystemGetNVMLVersion(char *out, uint size) {
    ENTER_FOR(nvmlSystemGetNVMLVersion, NULL, NO_SESSION, 0) return give_text(present(member(file.root, "nvml_version")), out, size);
}
static ret cuda_version(int *out) { return give_uint(present(member(file.root, "cuda_version")), (uint *)out); }
API ret nvmlSystemGetCudaDriverVersion_v2(int *out) { ENTER_FOR(nvmlSystemGetCudaDriverVersion_v2, NULL, NO_SESSION, 0) return cuda_version(out); }
API ret nvmlSystemGetCudaDriverVersion(int *out) { ENTER_FOR(nvmlSystemGetCudaDriverVersion, NULL, NO_SESSION, 0) return cuda_version(out); }

API ret nvmlSystemGetProcessName(uint pid, char *out, uint size) {
    ENTER_SYSTEM(nvmlSystemGetProcessName)
    for (uint i = 0; i < session.count; i++) {
        const node *list = find(&session.gpu[i], "processes");
        for (const node *n = list && list->kind == JSON_LIST ? list->child : NULL; n; n = n->next)
            if (whole(member(n, "pid"), 0) == pid) return give_text(present(member(n, "name")), out, size);
    }
    return NOT_FOUND;
}

static ret device_count(uint *out) {
    if (!out) return INVALID_ARGUMENT;
    *out = session.count;
    return SUCCESS;
}
API ret nvmlDeviceGetCount_v2(uint *out) { ENTER_SYSTEM(nvmlDeviceGetCount_v2) return device_count(out); }
API ret nvmlDeviceGetCount(uint *out) { ENTER_SYSTEM(nvmlDeviceGetCount) return device_count(out); }

static device *handle_at(uint index) { return index < session.count ? &session.gpu[index] : NULL; }

static ret by_index(uint index, device **out) {
    if (!out || index >= session.count) return INVALID_ARGUMENT;
    device *d = &session.gpu[index];
    ret r = d->node ? code_of(d->error) : GPU_IS_LOST;
    if (r == SUCCESS) *out = d;
    return r;
}
API ret nvmlDeviceGetHandleByIndex_v2(uint index, device **out) {
    ENTER_FOR(nvmlDeviceGetHandleByIndex_v2, handle_at(index), A_SESSION, 0) return by_index(index, out);
}
API ret nvmlDeviceGetHandleByIndex(uint index, device **out) {
    ENTER_FOR(nvmlDeviceGetHandleByIndex, handle_at(index), A_SESSION, 0) return by_index(index, out);
}

static ret by_text(const char *wanted, bool uuid, device **out) {
    if (!wanted || !out) return INVALID_ARGUMENT;
    for (uint i = 0; i < session.count; i++) {
        device *d = &session.gpu[i];
        if (strcasecmp(uuid ? d->uuid : d->bus_id, wanted)) continue;
        ret r = d->node ? code_of(d->error) : GPU_IS_LOST;
        if (r == SUCCESS) *out = d;
        return r;
    }
    return NOT_FOUND;
}

static ret mig_handle(device *parent, const node *instance, device **out);

API ret nvmlDeviceGetHandleByUUID(const char *uuid, device **out) {
    ENTER_SYSTEM(nvmlDeviceGetHandleByUUID)
    ret r = by_text(uuid, true, out);
    if (r != NOT_FOUND) return r;
    for (uint i = 0; i < session.count; i++) {
        const node *instance = instance_named(session.gpu[i].node, uuid);
        if (instance) return mig_handle(&session.gpu[i], instance, out);
    }
    return NOT_FOUND;
}

/* Accepts 4 and 8 digits of domain, as the real one does. */
static ret by_bus_id(const char *bus_id, device **out) {
    uint domain, bus, slot, function = 0;
    char full[32];
    if (!bus_id || !out || sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) return INVALID_ARGUMENT;
    snprintf(full, sizeof full, "%08X:%02X:%02X.%X", domain, bus, slot, function);
    return by_text(full, false, out);
}
API ret nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device **out) {
    ENTER_SYSTEM(nvmlDeviceGetHandleByPciBusId_v2) return by_bus_id(bus_id, out);
}
API ret nvmlDeviceGetHandleByPciBusId(const char *bus_id, device **out) {
    ENTER_SYSTEM(nvmlDeviceGetHandleByPciBusId) return by_bus_id(bus_id, out);
}

API ret nvmlDeviceGetHandleBySerial(const char *serial, device **out) {
    ENTER_SYSTEM(nvmlDeviceGetHandleBySerial)
    char own[64];
    if (!serial || !out) return INVALID_ARGUMENT;
    for (uint i = 0; i < session.count; i++)
        if (session.gpu[i].node && get_text(&session.gpu[i], "serial", own, sizeof own) == SUCCESS && !strcmp(own, serial)) {
            *out = &session.gpu[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}
