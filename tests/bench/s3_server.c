// An S3 server that costs its clients little: one bucket in memory, a thread a connection, no signature is checked.
//
//     s3_server LATENCY_MS   prints its port, serves until it is stopped
//
// It knows what publishing and the clients beside it need: PUT with If-Match and If-None-Match, GET, HEAD, DELETE,
// DeleteObjects, ListObjectsV2, and GET /-/requests, which tells how many requests and puts there were so far.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 1 << 16, BUCKETS = 1 << 17, LIST_MAX = 1000 };

typedef struct Object {
    struct Object *next;
    char *key, *body, *kept;  // kept: the header lines to answer with
    size_t size;
    unsigned long tag;
    time_t modified;
} Object;

typedef struct {
    char *bytes;
    size_t size, room;
} Buffer;

typedef struct {
    int socket;
    char *in;
    size_t begin, end, room;
    char method[16], path[4096], query[4096], head[HEAD_MAX];
    char *body;
    size_t size;
} Connection;

static Object *table[BUCKETS];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_long requests, puts_, tags = 1, objects;
static long latency_ms;

// ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────

static void *must(void *memory) {
    if (!memory) abort();
    return memory;
}

__attribute__((format(printf, 2, 3))) static void add(Buffer *to, const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    char *text;
    int size = vasprintf(&text, form, arguments);
    va_end(arguments);
    if (size < 0) abort();
    if (to->size + (size_t)size + 1 > to->room) {
        to->room = (to->room + (size_t)size + 1) * 2;
        to->bytes = must(realloc(to->bytes, to->room));
    }
    memcpy(to->bytes + to->size, text, (size_t)size + 1);
    to->size += (size_t)size;
    free(text);
}

static void decode(char *text) {
    char *to = text;
    for (; *text; text++) {
        if (*text == '%' && isxdigit(text[1]) && isxdigit(text[2])) {
            char pair[3] = {text[1], text[2], 0};
            *to++ = (char)strtol(pair, NULL, 16);
            text += 2;
        } else {
            *to++ = *text == '+' ? ' ' : *text;
        }
    }
    *to = 0;
}

static int send_all(int socket, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int more(Connection *on) {
    if (on->begin > 0) {
        memmove(on->in, on->in + on->begin, on->end - on->begin);
        on->end -= on->begin;
        on->begin = 0;
    }
    if (on->end == on->room) on->in = must(realloc(on->in, (on->room *= 2) + 1));
    ssize_t got = recv(on->socket, on->in + on->end, on->room - on->end, 0);
    if (got <= 0) return -1;
    on->end += (size_t)got;
    return 0;
}

// ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

// The value of a header, cut out of the head into `value`; NULL where there is none.
static char *header(const Connection *on, const char *name, char value[1024]) {
    size_t length = strlen(name);
    for (const char *line = strstr(on->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) || line[2 + length] != ':') continue;
        const char *from = line + 3 + length;
        while (*from == ' ') from++;
        size_t size = strcspn(from, "\r");
        if (size > 1023) size = 1023;
        memcpy(value, from, size);
        value[size] = 0;
        return value;
    }
    return NULL;
}

// A parameter of the query, decoded; NULL where there is none.
static char *parameter(const Connection *on, const char *name, char value[4096]) {
    size_t length = strlen(name);
    for (const char *at = on->query; *at;) {
        size_t size = strcspn(at, "&");
        if (!strncmp(at, name, length) && (at[length] == '=' || size == length)) {
            size_t skip = size == length ? length : length + 1;
            memcpy(value, at + skip, size - skip);
            value[size - skip] = 0;
            decode(value);
            return value;
        }
        at += size + (at[size] == '&');
    }
    return NULL;
}

// A body in chunks, HTTP's or S3's own, in place: each is `size[;signature]`, its bytes, and the last is empty.
static size_t joined(char *body, size_t size) {
    char *at = body, *to = body, *end = body + size;
    while (at < end) {
        char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
        size_t chunk = strtoull(at, NULL, 16);
        if (!line || chunk == 0) break;
        memmove(to, line + 2, chunk);
        to += chunk;
        at = line + 2 + chunk + 2;
    }
    return (size_t)(to - body);
}

static int read_body(Connection *on) {
    char value[1024];
    on->size = 0;
    if (header(on, "expect", value) && send_all(on->socket, "HTTP/1.1 100 Continue\r\n\r\n", 25)) return -1;
    if (header(on, "transfer-encoding", value) && !strcasecmp(value, "chunked")) {
        char *stop;
        while (!(stop = memmem(on->in + on->begin, on->end - on->begin, "\r\n0\r\n\r\n", 7)))
            if (more(on)) return -1;
        on->body = on->in + on->begin;
        size_t whole = (size_t)(stop + 7 - on->body);
        on->size = joined(on->body, whole);
        on->begin += whole;
    } else if (header(on, "content-length", value)) {
        size_t whole = strtoull(value, NULL, 10);
        while (on->end - on->begin < whole)
            if (more(on)) return -1;
        on->body = on->in + on->begin;
        on->size = whole;
        on->begin += whole;
    }
    if (header(on, "x-amz-content-sha256", value) && !strncmp(value, "STREAMING-", 10))
        on->size = joined(on->body, on->size);
    return 0;
}

static int read_request(Connection *on) {
    char *stop;
    while (!(stop = memmem(on->in + on->begin, on->end - on->begin, "\r\n\r\n", 4)))
        if (on->end - on->begin >= HEAD_MAX || more(on)) return -1;
    size_t size = (size_t)(stop + 2 - (on->in + on->begin));
    if (size >= HEAD_MAX) return -1;
    memcpy(on->head, on->in + on->begin, size);
    on->head[size] = 0;
    on->begin += size + 2;
    char target[4096];
    if (sscanf(on->head, "%15s %4095s", on->method, target) != 2) return -1;
    char *mark = strchr(target, '?');
    strcpy(on->query, mark ? mark + 1 : "");
    if (mark) *mark = 0;
    strcpy(on->path, target);
    decode(on->path);
    return read_body(on);
}

// ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────

static Object **place(const char *key) {
    unsigned long hash = 14695981039346656037UL;
    for (const char *at = key; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211UL;
    Object **found = &table[hash % BUCKETS];
    while (*found && strcmp((*found)->key, key)) found = &(*found)->next;
    return found;
}

static void drop(Object **found) {
    Object *gone = *found;
    *found = gone->next;
    free(gone->key);
    free(gone->body);
    free(gone->kept);
    free(gone);
    objects--;
}

// What the client wants to be told of the object again.
static char *kept(const Connection *on) {
    Buffer lines = {0};
    add(&lines, "%s", "");
    for (const char *line = strstr(on->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        const char *from = line + 2;
        if (!strncasecmp(from, "x-amz-meta-", 11) || !strncasecmp(from, "content-type:", 13) ||
            !strncasecmp(from, "cache-control:", 14))
            add(&lines, "%.*s\r\n", (int)strcspn(from, "\r"), from);
    }
    return lines.bytes;
}

static int is_tag(const char *condition, unsigned long tag) {
    char text[40];
    snprintf(text, sizeof text, "%016lx", tag);
    return strstr(condition, text) != NULL;
}

static const char *put(Connection *on, const char *key, unsigned long *tag) {
    char none[1024], match[1024];
    Object *made = must(calloc(1, sizeof *made));
    made->kept = kept(on);
    made->body = must(malloc(on->size + 1));
    made->size = on->size;
    made->modified = time(NULL);
    memcpy(made->body, on->body, on->size);
    const char *refused = NULL, *is_new = header(on, "if-none-match", none), *is_same = header(on, "if-match", match);
    pthread_rwlock_wrlock(&lock);
    Object **found = place(key);
    if ((is_new && *found) || (is_same && *found && !is_tag(is_same, (*found)->tag))) refused = "412 Precondition Failed";
    if (is_same && !*found) refused = "404 Not Found";
    if (!refused) {
        if (*found) drop(found);
        found = place(key);
        made->key = must(strdup(key));
        made->tag = *tag = (unsigned long)tags++ * 0x9e3779b97f4a7c15UL;
        *found = made;
        objects++;
    }
    pthread_rwlock_unlock(&lock);
    if (refused) {
        free(made->body);
        free(made->kept);
        free(made);
    }
    return refused;
}

// ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

static void dated(char text[64], time_t moment) {
    struct tm parts;
    gmtime_r(&moment, &parts);
    strftime(text, 64, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}

static int answer(Connection *on, const char *status, const char *headers, const char *body, size_t size) {
    char date[64];
    dated(date, time(NULL));
    Buffer out = {0};
    add(&out, "HTTP/1.1 %s\r\nDate: %s\r\nServer: bench\r\nx-amz-request-id: 1\r\n%s", status, date, headers);
    if (strncmp(status, "204", 3)) add(&out, "Content-Length: %zu\r\n", size);
    add(&out, "\r\n");
    int has_body = size > 0 && strcmp(on->method, "HEAD");
    if (has_body) {
        out.bytes = must(realloc(out.bytes, out.size + size));
        memcpy(out.bytes + out.size, body, size);
        out.size += size;
    }
    int failed = send_all(on->socket, out.bytes, out.size);
    free(out.bytes);
    return failed;
}

static int fail(Connection *on, const char *status) {
    const char *code = status[1] == '1' ? "PreconditionFailed" : status[2] == '3' ? "AccessDenied" : "NoSuchKey";
    char body[200];
    int size = snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, status);
    return answer(on, status, "Content-Type: application/xml\r\n", body, (size_t)size);
}

static int answer_object(Connection *on, const char *key) {
    pthread_rwlock_rdlock(&lock);
    Object *found = *place(key);
    if (!found) {
        pthread_rwlock_unlock(&lock);
        return fail(on, "404 Not Found");
    }
    char modified[64];
    dated(modified, found->modified);
    Buffer headers = {0};
    add(&headers, "ETag: \"%016lx\"\r\nLast-Modified: %s\r\n%s", found->tag, modified, found->kept);
    char *body = must(malloc(found->size + 1));
    size_t size = found->size;
    memcpy(body, found->body, size);
    pthread_rwlock_unlock(&lock);
    int failed = answer(on, "200 OK", headers.bytes, body, size);
    free(body);
    free(headers.bytes);
    return failed;
}

static int answer_put(Connection *on, const char *key) {
    unsigned long tag = 0;
    puts_++;
    const char *refused = put(on, key, &tag);
    if (refused) return fail(on, refused);
    char headers[80];
    snprintf(headers, sizeof headers, "ETag: \"%016lx\"\r\n", tag);
    return answer(on, "200 OK", headers, "", 0);
}

static void delete(const char *key) {
    pthread_rwlock_wrlock(&lock);
    Object **found = place(key);
    if (*found) drop(found);
    pthread_rwlock_unlock(&lock);
}

static int answer_deletions(Connection *on) {
    on->body[on->size] = 0;
    Buffer out = {0};
    add(&out, "<DeleteResult>");
    for (char *at = on->body; (at = strstr(at, "<Key>")); at += 5) {
        char *stop = strstr(at, "</Key>");
        if (!stop) break;
        *stop = 0;
        delete(at + 5);
        add(&out, "<Deleted><Key>%s</Key></Deleted>", at + 5);
        at = stop;
    }
    add(&out, "</DeleteResult>");
    int failed = answer(on, "200 OK", "Content-Type: application/xml\r\n", out.bytes, out.size);
    free(out.bytes);
    return failed;
}

static int by_key(const void *one, const void *other) {
    return strcmp((*(Object *const *)one)->key, (*(Object *const *)other)->key);
}

static void add_object(Buffer *out, const Object *one) {
    char modified[64];
    struct tm parts;
    gmtime_r(&one->modified, &parts);
    strftime(modified, sizeof modified, "%Y-%m-%dT%H:%M:%S.000Z", &parts);
    add(out, "<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;%016lx&quot;</ETag>", one->key, modified,
        one->tag);
    add(out, "<Size>%zu</Size><StorageClass>STANDARD</StorageClass></Contents>", one->size);
}

static int answer_list(Connection *on) {
    char prefix[4096] = "", after[4096] = "", value[4096];
    parameter(on, "prefix", prefix);
    if (!parameter(on, "continuation-token", after)) parameter(on, "start-after", after);
    long most = parameter(on, "max-keys", value) ? atol(value) : LIST_MAX, count = 0, shown = 0;
    if (most > LIST_MAX) most = LIST_MAX;
    Buffer out = {0};
    add(&out, "<ListBucketResult><Name>markets</Name><Prefix>%s</Prefix>", prefix);
    pthread_rwlock_rdlock(&lock);
    Object **all = must(malloc(((size_t)objects + 1) * sizeof *all));
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        for (Object *one = table[bucket]; one; one = one->next)
            if (!strncmp(one->key, prefix, strlen(prefix)) && strcmp(one->key, after) > 0) all[count++] = one;
    qsort(all, (size_t)count, sizeof *all, by_key);
    for (; shown < count && shown < most; shown++) add_object(&out, all[shown]);
    add(&out, "<KeyCount>%ld</KeyCount><MaxKeys>%ld</MaxKeys><IsTruncated>%s</IsTruncated>", shown, most,
        shown < count ? "true" : "false");
    if (shown > 0 && shown < count)
        add(&out, "<NextContinuationToken>%s</NextContinuationToken>", all[shown - 1]->key);
    pthread_rwlock_unlock(&lock);
    free(all);
    add(&out, "</ListBucketResult>");
    int failed = answer(on, "200 OK", "Content-Type: application/xml\r\n", out.bytes, out.size);
    free(out.bytes);
    return failed;
}

static int answer_bucket(Connection *on) {
    const char *xml = "Content-Type: application/xml\r\n", *versions = "<VersioningConfiguration/>";
    char value[4096];
    if (!strcmp(on->method, "POST")) return answer_deletions(on);
    if (strcmp(on->method, "GET")) return answer(on, "200 OK", "", "", 0);
    if (parameter(on, "versioning", value)) return answer(on, "200 OK", xml, versions, strlen(versions));
    return answer_list(on);
}

static int serve(Connection *on) {
    if (!strcmp(on->path, "/-/requests")) {
        char body[100];
        int size = snprintf(body, sizeof body, "{\"requests\": %ld, \"puts\": %ld}", (long)requests, (long)puts_);
        return answer(on, "200 OK", "", body, (size_t)size);
    }
    requests++;
    if (latency_ms) usleep((useconds_t)latency_ms * 1000);
    char value[1024];
    if (!header(on, "authorization", value)) return fail(on, "403 Forbidden");
    char *key = strchr(on->path + 1, '/');
    if (!key || !key[1]) return answer_bucket(on);
    key++;
    if (!strcmp(on->method, "PUT")) return answer_put(on, key);
    if (strcmp(on->method, "DELETE")) return answer_object(on, key);
    delete(key);
    return answer(on, "204 No Content", "", "", 0);
}

static void *converse(void *given) {
    Connection *on = must(calloc(1, sizeof *on));
    on->socket = (int)(long)given;
    on->in = must(malloc((on->room = 1 << 17) + 1));
    while (!read_request(on) && !serve(on)) {
    }
    close(on->socket);
    free(on->in);
    free(on);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 2) return fputs("s3_server LATENCY_MS\n", stderr), 2;
    latency_ms = atol(arguments[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in place = {.sin_family = AF_INET};
    socklen_t size = sizeof place;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&place, size) || listen(listener, 1024)) return perror("listen"), 1;
    getsockname(listener, (struct sockaddr *)&place, &size);
    printf("%d\n", ntohs(place.sin_port));
    fflush(stdout);
    for (;;) {
        int accepted = accept(listener, NULL, NULL);
        if (accepted < 0) continue;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_t thread;
        if (pthread_create(&thread, NULL, converse, (void *)(long)accepted)) close(accepted);
        else pthread_detach(thread);
    }
}
