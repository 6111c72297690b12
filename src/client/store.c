/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/store.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "client/sys.h"
#include "client/text.h"

static const char store_shm[] = "/dev/shm";

/* Would growing to `bytes` raise SIGXFSZ, which kills? A memfd obeys the same limit. */
static bool store_is_allowed(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/* Room in the file before it is touched: a full /dev/shm is an error here and would be SIGBUS in the program. */
static int store_allocate(int fd, size_t start, size_t end)
{
    if (!store_is_allowed(end))
        return -EFBIG;
    return (int)sys_result(syscall(SYS_fallocate, fd, 0, (long)start, (long)(end - start)));
}

static void *store_map(int fd, unsigned region)
{
    size_t start = segment_region_start(region);
    void *memory = mmap(NULL, segment_region_end(region) - start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The user's directory: ours, a directory, closed to others; made when it is missing. */
static int store_open_directory(void)
{
    char path_bytes[STORE_PATH_MAX_BYTES];
    struct text path = text_in(path_bytes, sizeof path_bytes);
    text_add(&path, store_shm);
    text_add(&path, "/cicada-");
    text_add_u64(&path, (uint64_t)geteuid());
    (void)syscall(SYS_mkdirat, AT_FDCWD, text_end(&path), 0700); /* one that exists is checked like a new one */

    int fd = sys_open(AT_FDCWD, path_bytes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    struct stat info;
    if (fd >= 0 && (sys_stat_fd(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0)) {
        sys_close(fd);
        return -EPERM;
    }
    return fd;
}

/* Makes the file under its name; the name is the segment's id, so two never meet. */
static int store_create_file(struct store *store, const char *id_text)
{
    int dir_fd = store_open_directory();
    if (dir_fd < 0)
        return dir_fd;
    char name_bytes[STORE_PATH_MAX_BYTES];
    struct text name = text_in(name_bytes, sizeof name_bytes);
    text_add(&name, id_text);
    text_add(&name, ".segment");
    int fd = sys_open(dir_fd, text_end(&name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0 && store_allocate(fd, 0, SEGMENT_REGION_FIRST_BYTES) != 0) {
        (void)syscall(SYS_unlinkat, dir_fd, name_bytes, 0);
        sys_close(fd);
        fd = -ENOSPC;
    }
    sys_close(dir_fd);
    if (fd < 0)
        return fd;
    struct text path = text_in(store->path, sizeof store->path);
    text_add(&path, store_shm);
    text_add(&path, "/cicada-");
    text_add_u64(&path, (uint64_t)geteuid());
    text_add(&path, "/");
    text_add(&path, name_bytes);
    (void)text_end(&path);
    store->kind = STORE_FILE;
    return fd;
}

static int store_create_memfd(struct store *store)
{
    int fd = (int)sys_result(syscall(SYS_memfd_create, "cicada-v1", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd >= 0 && store_allocate(fd, 0, SEGMENT_REGION_FIRST_BYTES) != 0) {
        sys_close(fd);
        return -ENOSPC;
    }
    if (fd >= 0) {
        /* It can grow, but nobody can cut it under a reader that maps it. */
        (void)syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK);
        store->kind = STORE_MEMFD;
    }
    return fd;
}

static void store_hex(const uint8_t *bytes, size_t count, char *out_text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out_text[2 * i] = digits[bytes[i] >> 4];
        out_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    out_text[2 * count] = '\0';
}

static uint8_t store_hex_digit(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* 16 bytes of /proc/sys/kernel/random/boot_id, "01234567-89ab-…"; zeros where it can't be read. */
static void store_read_boot_id(uint8_t out_id[SEGMENT_ID_BYTES])
{
    char text[40];
    int fd = sys_open(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
    long got = fd < 0 ? 0 : sys_read(fd, text, sizeof text);
    sys_close(fd);
    size_t digits = 0;
    for (long i = 0; i < got && digits < 2 * (size_t)SEGMENT_ID_BYTES; i++) {
        bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (!is_digit)
            continue;
        uint8_t shift = digits % 2 == 0 ? 4 : 0;
        out_id[digits / 2] = (uint8_t)(out_id[digits / 2] | store_hex_digit(text[i]) << shift);
        digits++;
    }
}

/* Tells the proxy that the segment is in use: see SEGMENT_FLAG_LOCKED. Before the first region is mapped. */
static bool store_lock(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return sys_result(syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock)) == 0;
}

static void store_fill_header(struct store *store, const uint8_t id[SEGMENT_ID_BYTES], bool is_locked)
{
    struct segment_header *header = store_header(store);
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    header->version = SEGMENT_VERSION;
    header->header_bytes = SEGMENT_HEADER_BYTES;
    memcpy(header->id, id, SEGMENT_ID_BYTES);
    store_read_boot_id(header->boot_id);
    header->uid = (uint32_t)geteuid();
    header->flags = is_locked ? SEGMENT_FLAG_LOCKED : 0;
    header->created_wall_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    header->used_bytes = SEGMENT_HEADER_BYTES;
    __atomic_store_n(&header->magic, SEGMENT_MAGIC, __ATOMIC_RELEASE); /* from here on it is a segment */
}

void store_create(struct store *store)
{
    *store = (struct store){.kind = STORE_PRIVATE, .fd = -1};
    uint8_t id[SEGMENT_ID_BYTES] = {0};
    (void)syscall(SYS_getrandom, id, sizeof id,
                  0); /* 16 bytes always come whole; zeros before it works at all (boot) */
    char id_text[2 * SEGMENT_ID_BYTES + 1];
    store_hex(id, sizeof id, id_text);

    int fd = store_create_file(store, id_text);
    if (fd < 0)
        fd = store_create_memfd(store);
    struct stat info;
    bool is_locked = false;
    if (fd >= 0 && sys_stat_fd(fd, &info) == 0) {
        is_locked = store_lock(fd);
        store->fd = fd;
        store->device = info.st_dev;
        store->inode = info.st_ino;
        store->regions[0] = store_map(fd, 0);
    }
    if (store->regions[0] == NULL) {
        if (store->kind == STORE_FILE)
            (void)syscall(SYS_unlinkat, AT_FDCWD, store->path, 0);
        sys_close(fd);
        store->fd = -1;
        store->kind = STORE_PRIVATE;
        store->regions[0] = sys_memory(SEGMENT_REGION_FIRST_BYTES);
    }
    if (store->regions[0] != NULL)
        store_fill_header(store, id, is_locked);
}

static bool store_is_ours(const struct store *store, int fd)
{
    struct stat info;
    return fd >= 0 && sys_stat_fd(fd, &info) == 0 && info.st_dev == store->device && info.st_ino == store->inode;
}

int store_descriptor(struct store *store)
{
    if (store->kind == STORE_PRIVATE)
        return -ENOENT;
    if (store_is_ours(store, store->fd))
        return store->fd;
    store->fd = -1; /* the number belongs to the program now: it must not be closed */
    if (store->kind != STORE_FILE)
        return -EBADF;
    int fd = sys_open(AT_FDCWD, store->path, O_RDWR | O_NOFOLLOW, 0);
    if (!store_is_ours(store, fd)) {
        sys_close(fd);
        return -ENOENT;
    }
    store->fd = fd;
    return fd;
}

/* Maps region `index`, which may have been allocated by another process of the segment, or not yet by any. */
static bool store_map_region(struct store *store, unsigned index)
{
    if (index >= SEGMENT_REGIONS_MAX)
        return false;
    if (store->regions[index] != NULL)
        return true;
    if (store->kind == STORE_PRIVATE) {
        store->regions[index] = sys_memory(segment_region_end(index) - segment_region_start(index));
        return store->regions[index] != NULL;
    }
    int fd = store_descriptor(store);
    if (fd < 0 || store_allocate(fd, segment_region_start(index), segment_region_end(index)) != 0)
        return false;
    store->regions[index] = store_map(fd, index);
    return store->regions[index] != NULL;
}

void *store_reserve(struct store *store, uint32_t bytes)
{
    struct segment_header *header = store_header(store);
    uint64_t used = __atomic_load_n(&header->used_bytes, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t start = used;
        unsigned region = segment_region_of((size_t)start);
        if (region < SEGMENT_REGIONS_MAX && start + bytes > segment_region_end(region)) {
            start = segment_region_end(region); /* a record crosses no region's end; the rest of this one stays zeros */
            region++;
        }
        if (region >= SEGMENT_REGIONS_MAX || start + bytes > SEGMENT_BYTES_MAX || !store_map_region(store, region))
            return NULL;
        /* Other processes of the segment append as well: only one of us gets this place. */
        if (!__atomic_compare_exchange_n(&header->used_bytes, &used, start + bytes, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        bool has_gap = start > used && region > 0;
        if (has_gap && store->regions[region - 1] != NULL)
            store_publish(store->regions[region - 1] + (used - segment_region_start(region - 1)), SEGMENT_GAP,
                          (uint32_t)(start - used));
        return store->regions[region] + (start - segment_region_start(region));
    }
}

void store_publish(void *record, enum segment_record_kind kind, uint32_t bytes)
{
    __atomic_store_n((uint64_t *)record, segment_word(kind, bytes), __ATOMIC_RELEASE);
}

static bool store_copy_record(struct store *to, const char *record, enum segment_record_kind kind, uint32_t bytes)
{
    char *copy = store_reserve(to, bytes);
    if (copy == NULL)
        return false;
    memcpy(copy + sizeof(uint64_t), record + sizeof(uint64_t), bytes - sizeof(uint64_t));
    store_publish(copy, kind, bytes);
    return true;
}

/* Copies the record at `record` if it is the job's or of a metric that is wanted. False when there is no room. */
static bool store_copy_description(struct store *to, const char *record, enum segment_record_kind kind, uint32_t bytes,
                                   bool (*is_wanted)(const struct segment_metric *metric))
{
    const struct segment_metric *metric = (const struct segment_metric *)(const void *)record;
    if (kind == SEGMENT_JOB)
        return store_copy_record(to, record, kind, bytes);
    if (kind != SEGMENT_METRIC || !is_wanted(metric))
        return true;
    uint64_t end_cell = (uint64_t)metric->first_cell + metric->cells_count;
    if (store_header(to)->cells_used < end_cell)
        store_header(to)->cells_used = end_cell;
    return store_copy_record(to, record, kind, bytes);
}

bool store_copy_descriptions(struct store *to, const struct store *from,
                             bool (*is_wanted)(const struct segment_metric *metric))
{
    if (to->regions[0] == NULL)
        return false;
    for (unsigned region = 0; region < SEGMENT_REGIONS_MAX; region++) {
        const char *start = from->regions[region];
        size_t length = segment_region_end(region) - segment_region_start(region);
        for (size_t at = region == 0 ? SEGMENT_HEADER_BYTES : 0; start != NULL && at < length;) {
            uint8_t kind;
            uint32_t bytes;
            uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(start + at), __ATOMIC_ACQUIRE);
            if (!segment_word_parse(word, &kind, &bytes)) {
                at += SEGMENT_ALIGN; /* being written, or never to be: as readers do */
                continue;
            }
            if (!store_copy_description(to, start + at, (enum segment_record_kind)kind, bytes, is_wanted))
                return false;
            at += bytes;
        }
    }
    return true;
}

void store_close(struct store *store, bool is_removed)
{
    if (is_removed && store->kind == STORE_FILE)
        (void)syscall(SYS_unlinkat, AT_FDCWD, store->path, 0);
    for (unsigned region = 0; region < SEGMENT_REGIONS_MAX; region++) {
        if (store->regions[region] != NULL)
            (void)munmap(store->regions[region], segment_region_end(region) - segment_region_start(region));
        store->regions[region] = NULL;
    }
    if (store_is_ours(store, store->fd))
        sys_close(store->fd);
    store->fd = -1;
}
