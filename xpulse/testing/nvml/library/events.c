/* Event sets: the list `events` of the state, each {"id", "bus_id", "type", "data", "gi", "ci"}; a set gives those newer than itself.
 *
 * A wait costs nothing while nothing happens: it sleeps on the state file's folder, whose changes the kernel tells.
 */

typedef struct { bool used; uint64_t cursor; ull wanted[MAX_GPUS]; } event_set;
static event_set event_sets[MAX_EVENT_SETS];

static bool is_set(const event_set *set) { return set >= event_sets && set < event_sets + MAX_EVENT_SETS && set->used; }
/* A set belongs to its session: one that could not be given back when the driver was gone is gone with it. */
static void end_event_sets(void) {
    for (event_set *set = event_sets; set < event_sets + MAX_EVENT_SETS; set++) set->used = false;
}
static uint64_t newest_event(void) {
    uint64_t newest = 0;
    const node *events = member(file.root, "events");
    for (const node *n = events ? events->child : NULL; n; n = n->next)
        if (whole(member(n, "id"), 0) > newest) newest = whole(member(n, "id"), 0);
    return newest;
}

API ret nvmlEventSetCreate(event_set **out) {
    ENTER_SYSTEM(nvmlEventSetCreate)
    if (!out) return INVALID_ARGUMENT;
    for (event_set *set = event_sets; set < event_sets + MAX_EVENT_SETS; set++) {
        if (set->used) continue;
        *set = (event_set){.used = true, .cursor = newest_event()};
        *out = set;
        return SUCCESS;
    }
    return INSUFFICIENT_RESOURCES;
}
API ret nvmlEventSetFree(event_set *set) {
    ENTER_SYSTEM(nvmlEventSetFree)
    if (!is_set(set)) return INVALID_ARGUMENT;
    set->used = false;
    return SUCCESS;
}
static ull supported_events(const device *d) { return whole(find(d, "supported_event_types"), 0x1F); } /* SBE, DBE, P-state, Xid, clock */

API ret nvmlDeviceGetSupportedEventTypes(device *d, ull *out) {
    ENTER(nvmlDeviceGetSupportedEventTypes, d)
    if (!out) return INVALID_ARGUMENT;
    *out = supported_events(d);
    return SUCCESS;
}
API ret nvmlDeviceRegisterEvents(device *d, ull types, event_set *set) {
    ENTER(nvmlDeviceRegisterEvents, d)
    if (!is_set(set) || d->parent) return INVALID_ARGUMENT;
    if (!supported_events(d) || types & ~supported_events(d)) return NOT_SUPPORTED;
    set->wanted[d->index] |= types;
    return SUCCESS;
}

/* Called with the lock held. */
static bool take_event(event_set *set, event_data *out) {
    const node *events = member(file.root, "events"), *next = NULL;
    device *of = NULL;
    for (const node *n = events ? events->child : NULL; n; n = n->next) {
        uint64_t id = whole(member(n, "id"), 0);
        if (id <= set->cursor || (next && id >= whole(member(next, "id"), 0))) continue;
        const char *bus_id = text_or(member(n, "bus_id"), "");
        for (uint i = 0; i < session.count; i++)
            if (!strcmp(session.gpu[i].bus_id, bus_id) && set->wanted[i] & whole(member(n, "type"), 8)) {
                next = n;
                of = &session.gpu[i];
            }
    }
    if (!next) return false;
    set->cursor = whole(member(next, "id"), 0);
    *out = (event_data){of, whole(member(next, "type"), 8), whole(member(next, "data"), 0), id_of(next, "gi"), id_of(next, "ci")};
    return true;
}

static int watch_folder(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    char folder[4096];
    int fd = path ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    if (fd < 0) return -1;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    if (inotify_add_watch(fd, slash ? folder : ".", IN_MOVED_TO | IN_CLOSE_WRITE) >= 0) return fd;
    close(fd);
    return -1;
}
static void wait_for_change(int fd, int64_t until_ns) {
    int64_t left_ms = (until_ns - now_ns() + 999999) / 1000000;
    if (left_ms <= 0) return;
    char told[4096];
    struct pollfd one = {fd, POLLIN, 0};
    poll(&one, fd >= 0, fd >= 0 ? (int)(left_ms < 500 ? left_ms : 500) : (int)(left_ms < 50 ? left_ms : 50));
    while (fd >= 0 && read(fd, told, sizeof told) > 0) {}
}
/* Whether an event came, or why none can: what a call finds when it looks again while it waits. */
static ret look_again(event_set *set, event_data *out) {
    bool locked __attribute__((cleanup(leave))) = true;
    (void)locked;
    pthread_mutex_lock(&lock);
    refresh();
    if (file.missing) return DRIVER_NOT_LOADED;
    if (!session.opened || session.driver_load != file.driver_load) return UNINITIALIZED;
    if (!is_set(set)) return INVALID_ARGUMENT;
    ret r = code_of(file.error);
    return r != SUCCESS ? r : take_event(set, out) ? SUCCESS : TIMEOUT;
}
static ret begin_wait(event_set *set, const event_data *out) {
    ENTER_SYSTEM(nvmlEventSetWait_v2) return is_set(set) && out ? SUCCESS : INVALID_ARGUMENT;
}
static ret wait_on(event_set *set, event_data *out, uint timeout_ms) {
    int64_t until_ns = now_ns() + (int64_t)timeout_ms * 1000000;
    ret r = begin_wait(set, out);
    if (r != SUCCESS) return r;
    int fd = timeout_ms ? watch_folder() : -1;
    while ((r = look_again(set, out)) == TIMEOUT && now_ns() < until_ns) wait_for_change(fd, until_ns);
    if (fd >= 0) close(fd);
    return r;
}
API ret nvmlEventSetWait_v2(event_set *set, event_data *out, uint timeout_ms) { return wait_on(set, out, timeout_ms); }
/* The first version knows no instances. */
API ret nvmlEventSetWait(event_set *set, event_data *out, uint timeout_ms) {
    ret r = wait_on(set, out, timeout_ms);
    if (r == SUCCESS) out->gi = out->ci = 0;
    return r;
}
