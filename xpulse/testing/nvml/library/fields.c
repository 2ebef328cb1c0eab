/* nvmlDeviceGetFieldValues: the group `fields`, by number ("83"), or number and scope ("202:3" for link 3, "202:each" for all links).
 *
 * A value may be an object: {"value": 5, "type": 1}, {"return": 4}. The type is else the one that real drivers answer. Numbers from
 * `fields_known_below` on are unknown to the driver: its return code is INVALID_ARGUMENT.
 */

static uint field_type(uint id) { /* 0 double, 1 unsigned int, 3 unsigned long long, 5 signed int */
    if (id >= 193 && id <= 196) return 5;
    if (id == 82 || id == 90 || id == 91 || id == 94 || id == 95 || (id >= 142 && id <= 145) || id == 147) return 1;
    if ((id >= 164 && id <= 168) || (id >= 170 && id <= 172) || (id >= 184 && id <= 190) || id == 192) return 1;
    if (id == 199 || id == 200 || (id >= 223 && id <= 230) || id == 274) return 1;
    return 3;
}
static bool counts_bytes_of_links(uint id) { return (id >= 138 && id <= 141) || (id >= 201 && id <= 204); }
static bool of_links(uint id) { return counts_bytes_of_links(id) || (id >= 161 && id <= 168) || (id >= 205 && id <= 222) || (id >= 235 && id <= 250) || (id >= 289 && id <= 296); }

/* Unscoped calls leave the scope 0, which is link 0: bytes are then that link's, as real drivers have it. Another field of links heeds
 * the scope only where it has words for single links. */
static ret field_number(const device *d, const field_value *f, const node **found, ull *number) {
    char plain[16], scoped[32], each[24];
    snprintf(plain, sizeof plain, "%u", f->field);
    snprintf(scoped, sizeof scoped, "%u:%u", f->field, f->scope);
    snprintf(each, sizeof each, "%u:each", f->field);
    const node *total = find_in(d, "fields", plain), *one = find_in(d, "fields", scoped), *of_each = find_in(d, "fields", each);
    bool all = f->scope == 0xFFFFFFFF || (!f->scope && !one && !of_each && !counts_bytes_of_links(f->field));
    if (!of_links(f->field)) {
        *found = one ? one : total;
    } else if (all) {
        *found = total ? total : of_each;
        ret r = give_ull(*found, number);
        if (r == SUCCESS && !total) *number *= link_count(d);
        return r;
    } else {
        if (f->scope >= link_count(d)) return f->scope < MAX_LINKS ? NOT_SUPPORTED : INVALID_ARGUMENT;
        *found = one ? one : of_each ? of_each : counts_bytes_of_links(f->field) ? total : NULL;
        ret r = give_ull(*found, number);
        if (r == SUCCESS && *found == total) *number /= link_count(d);
        return r;
    }
    return give_ull(*found, number);
}

/* A field of links is not supported on a card in MIG mode. */
static void answer_field(const device *d, field_value *f, long long at_us) {
    const node *found = NULL;
    ull number = 0;
    f->timestamp = at_us;
    f->latency = 0;
    f->value.ull_ = 0;
    f->type = field_type(f->field);
    f->result = !f->field || f->field >= whole(member(file.root, "fields_known_below"), 4096) ? INVALID_ARGUMENT : of_links(f->field) && under_mig(d) ? NOT_SUPPORTED : field_number(d, f, &found, &number);
    if (f->result != SUCCESS) return;
    const node *value = found->kind == JSON_OBJECT ? member(found, "value") : found;
    f->type = (uint)whole(member(found, "type"), value && value->kind == JSON_NUMBER && !value->is_whole ? 0 : f->type);
    switch (f->type) {
    case 0: f->value.d = value ? value->number : 0; break;
    case 1: f->value.u = (uint)number; break;
    case 5: f->value.i = (int)number; break;
    case 6: f->value.us = (unsigned short)number; break;
    default: f->value.ull_ = number;
    }
}
static uint64_t per_field_us(void) {
    pthread_mutex_lock(&lock);
    refresh();
    uint64_t found = whole(member(file.root, "latency_us_per_field"), 0);
    pthread_mutex_unlock(&lock);
    return found;
}
API ret nvmlDeviceGetFieldValues(device *d, int count, field_value *values) {
    ENTER_FOR(nvmlDeviceGetFieldValues, d, A_DEVICE, count > 0 ? per_field_us() * (uint64_t)count : 0)
    if (!values || count <= 0) return INVALID_ARGUMENT;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < count; i++) answer_field(d, &values[i], (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    return SUCCESS;
}
