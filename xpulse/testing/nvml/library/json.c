/* A JSON text becomes a tree of nodes in two allocations: the text itself, decoded in place, and one array of nodes. */

enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

typedef struct node {
    int kind;
    uint32_t hash;      /* of the key, where the parent is an object */
    const char *key, *text;
    double number;
    uint64_t whole;     /* a whole number keeps its 64 bits; a negative one is two's complement */
    bool is_whole;
    struct node *child, *next;
    uint count;
} node;

typedef struct {
    char *text;
    node *nodes;
    node *root;         /* NULL where the text is no JSON */
} tree;

typedef struct { char *at; node *free; int depth; } parser;

static uint32_t hash_of(const char *key) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (; *key; key++) h = (h ^ (unsigned char)*key) * 16777619u;
    return h;
}

static void skip_space(parser *p) {
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r') p->at++;
}

static char *utf8(char *out, uint code) {
    if (code < 0x80) *out++ = (char)code;
    else if (code < 0x800) { *out++ = (char)(0xC0 | code >> 6); *out++ = (char)(0x80 | (code & 63)); }
    else { *out++ = (char)(0xE0 | code >> 12); *out++ = (char)(0x80 | (code >> 6 & 63)); *out++ = (char)(0x80 | (code & 63)); }
    return out;
}

static const char *parse_string(parser *p) { /* decoded is never longer than encoded */
    char *start = ++p->at, *out = start;
    for (; *p->at && *p->at != '"'; p->at++) {
        if (*p->at != '\\') { *out++ = *p->at; continue; }
        switch (*++p->at) {
        case 'n': *out++ = '\n'; break;
        case 't': *out++ = '\t'; break;
        case 'r': *out++ = '\r'; break;
        case 'b': *out++ = '\b'; break;
        case 'f': *out++ = '\f'; break;
        case 'u': {
            uint code = 0;
            for (int i = 0; i < 4; i++) {
                char c = *++p->at;
                if (!isxdigit((unsigned char)c)) return NULL;
                code = code * 16 + (uint)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
            }
            out = utf8(out, code);
            break;
        }
        case 0: return NULL;
        default: *out++ = *p->at;
        }
    }
    if (*p->at != '"') return NULL;
    p->at++;
    *out = 0;
    return start;
}

static bool word(parser *p, node *n, const char *spelt, int kind) {
    size_t length = strlen(spelt);
    if (strncmp(p->at, spelt, length)) return false;
    p->at += length;
    n->kind = kind;
    return true;
}

static node *parse_value(parser *p);

static bool parse_members(parser *p, node *parent, char end) {
    node **link = &parent->child;
    if (++p->depth > 32) return false;
    p->at++;
    skip_space(p);
    while (*p->at != end) {
        const char *key = NULL;
        if (end == '}') {
            if (*p->at != '"' || !(key = parse_string(p))) return false;
            skip_space(p);
            if (*p->at++ != ':') return false;
        }
        node *child = parse_value(p);
        if (!child) return false;
        child->key = key;
        child->hash = key ? hash_of(key) : 0;
        *link = child;
        link = &child->next;
        parent->count++;
        skip_space(p);
        if (*p->at == ',') {
            p->at++;
            skip_space(p);
            if (*p->at == end) return false;
        } else if (*p->at != end) return false;
    }
    p->at++;
    p->depth--;
    return true;
}

static node *parse_value(parser *p) {
    node *n = p->free++;
    memset(n, 0, sizeof *n);
    skip_space(p);
    switch (*p->at) {
    case '{': n->kind = JSON_OBJECT; return parse_members(p, n, '}') ? n : NULL;
    case '[': n->kind = JSON_LIST; return parse_members(p, n, ']') ? n : NULL;
    case '"': n->kind = JSON_TEXT; return (n->text = parse_string(p)) ? n : NULL;
    case 't': return word(p, n, "true", JSON_TRUE) ? n : NULL;
    case 'f': return word(p, n, "false", JSON_FALSE) ? n : NULL;
    case 'n': return word(p, n, "null", JSON_NULL) ? n : NULL;
    default: break;
    }
    char *after_number, *after_whole;
    n->kind = JSON_NUMBER;
    n->number = strtod(p->at, &after_number);
    if (after_number == p->at) return NULL;
    n->whole = *p->at == '-' ? (uint64_t)strtoll(p->at, &after_whole, 10) : strtoull(p->at, &after_whole, 10);
    n->is_whole = after_whole == after_number;
    if (!n->is_whole) n->whole = n->number < 0 ? (uint64_t)(int64_t)n->number : (uint64_t)n->number;
    p->at = after_number;
    return n;
}

/* Takes `text` over; free_tree gives both back. */
static tree parse_json(char *text) {
    size_t upper = 2; /* each value but the first follows one of these */
    for (const char *c = text; *c; c++) upper += *c == ',' || *c == '{' || *c == '[';
    tree made = {text, malloc(upper * sizeof(node)), NULL};
    parser p = {text, made.nodes, 0};
    node *root = made.nodes ? parse_value(&p) : NULL;
    skip_space(&p);
    if (root && root->kind == JSON_OBJECT && !*p.at) made.root = root;
    return made;
}

static void free_tree(tree *t) {
    free(t->nodes);
    free(t->text);
    *t = (tree){0};
}

/* The member of an object, or NULL; `null` counts as not there, so that a device can hide what the defaults say. */
static const node *member_hashed(const node *object, const char *key, uint32_t hash) {
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (const node *n = object->child; n; n = n->next)
        if (n->hash == hash && !strcmp(n->key, key)) return n;
    return NULL;
}
static const node *member(const node *object, const char *key) { return member_hashed(object, key, hash_of(key)); }
static const node *item(const node *list, uint index) {
    const node *n = list && list->kind == JSON_LIST ? list->child : NULL;
    while (n && index--) n = n->next;
    return n;
}
/* Numbers may stand as text too: "0x233010DE". */
static uint64_t whole(const node *n, uint64_t otherwise) {
    if (!n) return otherwise;
    if (n->kind == JSON_NUMBER) return n->whole;
    if (n->kind == JSON_TEXT && isdigit((unsigned char)n->text[0])) return strtoull(n->text, NULL, 0);
    return n->kind == JSON_TRUE ? 1 : n->kind == JSON_FALSE ? 0 : otherwise;
}
static const char *text_or(const node *n, const char *otherwise) { return n && n->kind == JSON_TEXT ? n->text : otherwise; }
