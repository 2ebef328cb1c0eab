/* How often each symbol was called, in a file that other processes may map: $FAKE_NVML_CALLS, made when it is missing.
 *
 * 64 bytes a record: 56 of name, 8 of count in the machine's byte order. Counts are added atomically, by every process that has it open.
 */

typedef struct { char name[56]; uint64_t calls; } call_record;
_Static_assert(sizeof(call_record) == 64, "read as 64-byte records");

static call_record *open_counts(symbol **symbols, size_t count) {
    const char *path = getenv("FAKE_NVML_CALLS");
    if (!path || !*path) return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    size_t size = count * sizeof(call_record);
    if (fd < 0) return NULL;
    void *mapped = ftruncate(fd, (off_t)size) ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) return NULL;
    call_record *records = mapped;
    for (size_t i = 0; i < count; i++) strncpy(records[i].name, symbols[i]->name, sizeof records[i].name - 1);
    return records;
}
