/* The state file as a tree that is never older than the last call, the session's devices in it, and what each call does before it answers.
 *
 * Beside the state file a counter of eight bytes, `<file>.seq`, may lie: who writes the state raises it after each change. Where it is
 * there, a call looks at the mapped counter (nanoseconds) and at the file itself only every 50 ms; else each call asks the kernel
 * whether inode, size or time of the file changed. Only a file that changed is read again, and one that cannot be parsed is left alone.
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

extern symbol *__start_fake_symbols[], *__stop_fake_symbols[];

static struct {
    tree now;
    const node *root, *defaults, *gpus;
    const node *error, *latency;   /* of every call */
    uint64_t driver_load;
    struct stat stamp;
    const volatile uint64_t *sequence;
    uint64_t seen_sequence;
    int64_t looked_at_ns;
    bool missing, complained;
    char path[4096];
    call_record *counts;
    bool counts_opened;
} file;

static struct {
    uint opened;            /* nvmlInit minus nvmlShutdown */
    uint64_t driver_load;
    uint count;
    device gpu[MAX_GPUS];
    device mig[MAX_MIG_HANDLES];
    uint64_t starts;        /* how many sessions there were; a handle belongs to one */
} session;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t coarse_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static char *contents(const char *path, struct stat *stamp) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (!fstat(fd, stamp) && (text = malloc((size_t)stamp->st_size + 1))) {
        ssize_t got = 0, n;
        while (got < stamp->st_size && (n = read(fd, text + got, (size_t)(stamp->st_size - got))) > 0) got += n;
        text[got] = 0;
    }
    close(fd);
    return text;
}

/* Another file than before: forget what belongs to the other. */
static void use_path(const char *path) {
    if (path ? !strcmp(path, file.path) : !*file.path) return;
    if (file.sequence) munmap((void *)file.sequence, 8);
    file.sequence = NULL;
    file.stamp = (struct stat){0};
    snprintf(file.path, sizeof file.path, "%s", path ? path : "");
}

static void map_sequence(const char *path) {
    char name[4200];
    if (file.sequence || snprintf(name, sizeof name, "%s.seq", path) >= (int)sizeof name) return;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat s;
    void *mapped = fstat(fd, &s) || s.st_size < 8 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) file.sequence = mapped;
}

static void find_fault_nodes(void) {
    const node *symbols = member(file.root, "symbols");
    for (symbol **s = __start_fake_symbols; s < __stop_fake_symbols; s++) {
        (*s)->everywhere = member_hashed(symbols, (*s)->name, (*s)->hash);
        if (!(*s)->everywhere) (*s)->everywhere = member_hashed(symbols, (*s)->base, (*s)->base_hash);
    }
}

static const node *instance_named(const node *gpu, const char *uuid) {
    const node *instances = member(member(gpu, "mig"), "instances");
    for (const node *n = instances ? instances->child : NULL; n; n = n->next)
        if (!strcmp(text_or(member(n, "uuid"), ""), uuid)) return n;
    return NULL;
}

/* A session knows its cards by slot and UUID: one that was pulled, or replaced, is not there for it. */
static const node *gpu_named(const device *d) {
    for (const node *n = file.gpus ? file.gpus->child : NULL; n; n = n->next) {
        const char *uuid = text_or(member(n, "uuid"), "");
        if (!strcmp(text_or(member(n, "bus_id"), ""), d->bus_id) && (*uuid == '!' || !strcmp(uuid, d->uuid))) return n;
    }
    return NULL;
}

static const node *find(const device *d, const char *key);

static void find_devices(void) {
    for (uint i = 0; i < session.count; i++) {
        device *d = &session.gpu[i];
        d->node = gpu_named(d);
        d->symbols = member(d->node, "symbols");
        d->error = find(d, "error");
        d->latency = find(d, "latency_us");
    }
    for (uint i = 0; i < MAX_MIG_HANDLES; i++) {
        device *d = &session.mig[i];
        if (!d->parent) continue;
        d->node = instance_named(d->parent->node, d->uuid);
        d->symbols = d->parent->symbols;
    }
}

static void read_again(const char *path) {
    struct stat stamp;
    char *text = contents(path, &stamp);
    if (!text) return;
    tree fresh = parse_json(text);
    if (!fresh.root) {
        free_tree(&fresh);
        if (!file.complained) fprintf(stderr, "fake libnvidia-ml: %s is not a JSON object; the last good one holds\n", path);
        file.complained = true;
        return;
    }
    free_tree(&file.now);
    file.now = fresh;
    file.root = fresh.root;
    file.stamp = stamp;
    file.complained = false;
    file.defaults = member(file.root, "defaults");
    file.gpus = member(file.root, "devices");
    file.error = member(file.root, "error");
    file.latency = member(file.root, "latency_us");
    file.driver_load = whole(member(file.root, "driver_load"), 0);
    find_fault_nodes();
    find_devices();
}

/* Called with the lock held. */
static void refresh(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    if (!file.counts_opened) {
        file.counts_opened = true;
        file.counts = open_counts(__start_fake_symbols, (size_t)(__stop_fake_symbols - __start_fake_symbols));
    }
    use_path(path);
    int64_t at = coarse_ns();
    if (file.sequence && *file.sequence == file.seen_sequence && at - file.looked_at_ns < 50000000 && !file.missing) return;
    file.looked_at_ns = at;
    if (file.sequence) file.seen_sequence = *file.sequence;
    struct stat s;
    file.missing = !path || stat(path, &s);
    if (file.missing) return;
    if (file.root && s.st_ino == file.stamp.st_ino && s.st_size == file.stamp.st_size &&
        s.st_mtim.tv_sec == file.stamp.st_mtim.tv_sec && s.st_mtim.tv_nsec == file.stamp.st_mtim.tv_nsec) return;
    map_sequence(path);
    if (file.sequence) file.seen_sequence = *file.sequence;
    read_again(path);
}

/* ---- what a device says ---- */

static const node *present(const node *n) { return n && n->kind != JSON_NULL ? n : NULL; }

static const node *in_group(const node *object, const char *group, const char *key) {
    return member(group ? member(object, group) : object, key);
}

/* `group` may be NULL. A card's own word wins over the defaults; an instance has only its own, unless its card is told to answer for it. */
static const node *find_in(const device *d, const char *group, const char *key) {
    const node *own = in_group(d->node, group, key);
    if (own) return present(own);
    if (!d->parent) return present(in_group(file.defaults, group, key));
    bool parent_answers = whole(member(member(d->parent->node, "mig"), "instances_answer_for_parent"), 0);
    return parent_answers ? find_in(d->parent, group, key) : NULL;
}
static const node *find(const device *d, const char *key) { return find_in(d, NULL, key); }

/* A value, or the return code that stands for it: "!3", or {"return": 3}. */
static ret said(const node *n) {
    if (!n) return NOT_SUPPORTED;
    if (n->kind == JSON_TEXT && n->text[0] == '!') return atoi(n->text + 1);
    return n->kind == JSON_OBJECT ? (ret)whole(member(n, "return"), SUCCESS) : SUCCESS;
}

static uint64_t number_of(const node *n) {
    return n->kind == JSON_TEXT ? strtoull(n->text, NULL, 0) : n->kind == JSON_OBJECT ? whole(member(n, "value"), 0) : whole(n, 0);
}

static ret give_ull(const node *n, ull *out) {
    ret r = said(n);
    if (!out) return INVALID_ARGUMENT;
    if (r == SUCCESS) *out = number_of(n);
    return r;
}
static ret give_uint(const node *n, uint *out) {
    ull value = 0;
    ret r = give_ull(n, &value);
    if (!out) return INVALID_ARGUMENT;
    if (r == SUCCESS) *out = (uint)value;
    return r;
}
static ret give_text(const node *n, char *out, uint size) {
    ret r = said(n);
    if (r != SUCCESS) return r;
    if (!out) return INVALID_ARGUMENT;
    char number[32];
    const char *text = n->kind == JSON_TEXT ? n->text : number;
    if (n->kind != JSON_TEXT) snprintf(number, sizeof number, "%llu", (ull)number_of(n));
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}
static ret get_ull(const device *d, const char *key, ull *out) { return give_ull(find(d, key), out); }
static ret get_uint(const device *d, const char *key, uint *out) { return give_uint(find(d, key), out); }
static ret get_text(const device *d, const char *key, char *out, uint size) { return give_text(find(d, key), out, size); }
static uint uint_or(const device *d, const char *key, uint otherwise) { return (uint)whole(find(d, key), otherwise); }

/* ---- before each answer ---- */

static const node *fault_of(const symbol *s, const device *d) {
    const node *own = d ? member_hashed(d->symbols, s->name, s->hash) : NULL;
    if (!own && d) own = member_hashed(d->symbols, s->base, s->base_hash);
    return own ? own : s->everywhere;
}

static bool is_handle(const device *d) {
    return (d >= session.gpu && d < session.gpu + session.count) || (d >= session.mig && d < session.mig + MAX_MIG_HANDLES && d->parent);
}

static uint64_t latency_us(const node *fault, const device *d) {
    const node *own = member(fault, "latency_us");
    if (!own && d) own = (d->parent ? d->parent : d)->latency;
    return whole(own ? own : file.latency, 0);
}

/* A real call below a millisecond burns the processor, a longer one waits for the card. */
static void take_time(uint64_t microseconds) {
    if (!microseconds) return;
    int64_t until = now_ns() + (int64_t)microseconds * 1000;
    if (microseconds >= 1000) {
        struct timespec t = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
        nanosleep(&t, NULL);
        return;
    }
    while (now_ns() < until) {}
}

static ret code_of(const node *fault) { return !fault ? SUCCESS : fault->kind == JSON_NUMBER ? (ret)fault->whole : said(fault); }

/* Takes the lock and keeps it where it answers SUCCESS; leave() gives it back. `extra_us` is time the call takes beyond its latency. */
static ret enter(symbol *s, const device *d, int needs, uint64_t extra_us, bool *locked) {
    pthread_mutex_lock(&lock);
    refresh();
    if (file.counts) __atomic_fetch_add(&file.counts[s->slot - __start_fake_symbols].calls, 1, __ATOMIC_RELAXED);
    bool known = d && is_handle(d);
    const node *fault = fault_of(s, known ? d : NULL);
    while (whole(member(fault, "hang"), 0)) {
        pthread_mutex_unlock(&lock);
        take_time(5000);
        pthread_mutex_lock(&lock);
        refresh();
        fault = fault_of(s, known ? d : NULL);
    }
    uint64_t wait = latency_us(fault, known ? d : NULL) + extra_us;
    if (wait) {
        pthread_mutex_unlock(&lock);
        take_time(wait);
        pthread_mutex_lock(&lock);
        refresh();
        fault = fault_of(s, known ? d : NULL);
    }
    ret r = SUCCESS;
    if (file.missing || !file.root) r = DRIVER_NOT_LOADED;
    else if (needs != NO_SESSION && !session.opened) r = UNINITIALIZED;
    else if (needs == A_DEVICE && !known) r = INVALID_ARGUMENT;
    else if (needs != NO_SESSION && session.driver_load != file.driver_load) r = UNINITIALIZED;
    if (r == SUCCESS) r = code_of(file.error);
    if (r == SUCCESS) r = code_of(fault);
    if (r == SUCCESS && needs == A_DEVICE) {
        r = !(d->parent ? d->parent->node : d->node) ? GPU_IS_LOST : code_of((d->parent ? d->parent : d)->error);
        if (r == SUCCESS && !d->node) r = INVALID_ARGUMENT; /* an instance that was destroyed */
    }
    if (r != SUCCESS) pthread_mutex_unlock(&lock);
    *locked = r == SUCCESS;
    return r;
}

static void leave(const bool *locked) {
    if (*locked) pthread_mutex_unlock(&lock);
}
