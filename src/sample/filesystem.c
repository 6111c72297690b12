/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/filesystem.h"

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "sample/mounts.h"
#include "sample/probe.h"
#include "sample/procfile.h"
#include "util/clock.h"

static const struct sample_column filesystem_columns[FILESYSTEM_COLUMNS] = {
    [FILESYSTEM_SIZE] = {"size_bytes", "bytes", "size of the file system", SAMPLE_INTEGER},
    [FILESYSTEM_USED] = {"used_bytes", "bytes", "space in use", SAMPLE_INTEGER},
    [FILESYSTEM_AVAILABLE] = {"available_bytes", "bytes", "space that users other than root may still take",
                              SAMPLE_INTEGER},
    [FILESYSTEM_FILES] = {"files", "", "files (inodes) that the file system can hold", SAMPLE_INTEGER},
    [FILESYSTEM_FILES_USED] = {"files_used", "", "files (inodes) in use", SAMPLE_INTEGER},
    [FILESYSTEM_IS_READ_ONLY] = {"is_read_only", "", "1 when nothing can be written", SAMPLE_INTEGER},
};

/* What a question answers; in bytes and inodes. */
struct filesystem_usage {
    int64_t size_bytes; /* 0: this is no place for files */
    int64_t used_bytes;
    int64_t available_bytes;
    int64_t files; /* 0: without limit or unknown */
    int64_t files_used;
    bool is_read_only;
};

/* What this module knows of a mount beside what the list says. */
struct filesystem_watch {
    struct probe_key *key;
    int status_said;
};

struct collector {
    const char *mount_prefix;
    struct procfile file;
    bool is_polled; /* the kernel tells when the file has changed; a recorded one has to be read to see */
    bool is_read;   /* `mounts` is what the file says */
    struct mounts mounts;
    struct filesystem_watch *watches; /* [mounts.count] */
    struct probe *probe;
    struct sample_table table;
};

static int64_t filesystem_product(uint64_t count, uint64_t unit)
{
    int64_t product;
    return __builtin_mul_overflow(count, unit, &product) ? INT64_MAX : product; /* FUSE programs say what they like */
}

/* On a probing thread. */
static int filesystem_ask(const void *subject, void *answer)
{
    struct statvfs now;
    if (statvfs(subject, &now) < 0)
        return -errno;
    uint64_t blocks_used = now.f_blocks > now.f_bfree ? now.f_blocks - now.f_bfree : 0;
    uint64_t files_used = now.f_files > now.f_ffree ? now.f_files - now.f_ffree : 0;
    struct filesystem_usage *usage = answer;
    *usage = (struct filesystem_usage){
        .size_bytes = filesystem_product(now.f_blocks, now.f_frsize),
        .used_bytes = filesystem_product(blocks_used, now.f_frsize),
        .available_bytes = filesystem_product(now.f_bavail, now.f_frsize),
        .files = filesystem_product(now.f_files, 1),
        .files_used = filesystem_product(files_used, 1),
        .is_read_only = (now.f_flag & ST_RDONLY) != 0,
    };
    return 0;
}

/* Once a second, and a little less, for a tick may come a little early. */
static const struct probe_kind filesystem_probe = {
    .ask = filesystem_ask, .free_subject = free, .rest_ns = CLOCK_NS_PER_SECOND * 9 / 10};

static void filesystem_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    probe_free(collector->probe);
    sample_table_fini(&collector->table);
    mounts_fini(&collector->mounts);
    free(collector->watches);
    procfile_close(&collector->file);
    free(collector);
}

DEFINE_CLEANUP(collector, filesystem_close);

static int filesystem_open_list(const char *proc_path, struct procfile *list, struct error *err)
{
    int rc = procfile_open(list, proc_path, "self/mounts", err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc = procfile_open(list, proc_path, "mounts", err); /* recorded trees may have no process */
    if (rc == -ENOENT)
        return error_set(err, -ENODEV, "no '%s/self/mounts'", proc_path);
    return rc;
}

static int filesystem_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *collector = malloc(sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    *collector = (struct collector){.mount_prefix = config->mount_prefix, .file = PROCFILE_CLOSED};
    int rc = sample_table_init(&collector->table, filesystem_columns, FILESYSTEM_COLUMNS, MOUNTS_MAX, err);
    if (rc < 0)
        return rc;
    rc = probe_new(&filesystem_probe, PROBE_STUCK_AFTER_NS, &collector->probe, err);
    if (rc < 0)
        return rc;
    rc = filesystem_open_list(config->proc_path, &collector->file, err);
    if (rc < 0)
        return rc;
    struct statfs list;
    collector->is_polled = fstatfs(collector->file.fd, &list) == 0 && list.f_type == PROC_SUPER_MAGIC;
    *out_collector = TAKE(collector);
    return 0;
}

static int filesystem_watch(struct collector *collector, const struct mount *mount, struct filesystem_watch *out_watch,
                            struct error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s", collector->mount_prefix, mount->point) < 0)
        return error_set(err, -ENOMEM, "no memory for the path of a mount");
    *out_watch = (struct filesystem_watch){0};
    return probe_add(collector->probe, path, sizeof(struct filesystem_usage), &out_watch->key, err);
}

/* Hands over the watch of a mount that is in the old list, too. */
static bool filesystem_keep_watch(struct collector *collector, const struct mount *mount,
                                  struct filesystem_watch *out_watch)
{
    for (size_t i = 0; i < collector->mounts.count; i++) {
        const struct mount *old = &collector->mounts.list[i];
        if (collector->watches[i].key == NULL || strcmp(old->point, mount->point) != 0 ||
            strcmp(old->device, mount->device) != 0 || strcmp(old->type, mount->type) != 0)
            continue;
        *out_watch = collector->watches[i];
        collector->watches[i].key = NULL;
        return true;
    }
    return false;
}

/* Makes the watches of the new list; those of mounts that are gone are removed. Takes `mounts`. */
static int filesystem_replace_list(struct collector *collector, struct mounts *mounts, struct error *err)
{
    struct filesystem_watch *watches = calloc(mounts->count + 1, sizeof *watches); /* +1: never of size 0 */
    if (watches == NULL) {
        mounts_fini(mounts);
        return error_set(err, -ENOMEM, "no memory for the list of mounts");
    }
    int rc = 0;
    for (size_t i = 0; i < mounts->count && rc == 0; i++) {
        if (!filesystem_keep_watch(collector, &mounts->list[i], &watches[i]))
            rc = filesystem_watch(collector, &mounts->list[i], &watches[i], err);
    }
    for (size_t i = 0; i < collector->mounts.count; i++) {
        if (collector->watches[i].key != NULL)
            probe_remove(collector->watches[i].key);
    }
    mounts_fini(&collector->mounts);
    free(collector->watches);
    collector->mounts = *mounts;
    collector->watches = watches;
    return rc; /* after a failure some mounts have no key: they have no row, and the list is read anew */
}

static int filesystem_update_list(struct collector *collector, struct error *err)
{
    if (collector->is_polled && collector->is_read) {
        /* POLLERR means changed, here (proc_pid_mounts(5)); being told once, we have to remember it. */
        struct pollfd list = {.fd = collector->file.fd, .events = POLLPRI};
        if (poll(&list, 1, 0) == 0)
            return 0;
    }
    collector->is_read = false;
    int rc = procfile_read(&collector->file, err);
    if (rc < 0)
        return rc;
    struct mounts mounts;
    rc = mounts_parse(collector->file.text, collector->file.length, &mounts, err);
    if (rc < 0)
        return rc;
    rc = filesystem_replace_list(collector, &mounts, err);
    collector->is_read = rc == 0;
    return rc;
}

static void filesystem_fill_row(struct sample_table *table, const struct mount *mount,
                                const struct filesystem_usage *usage)
{
    struct sample_row *row = sample_table_row(table, mount->point, strlen(mount->point));
    if (row == NULL)
        return;
    sample_row_set_label(row, mount->device, strlen(mount->device));
    sample_row_set_type(row, mount->type, strlen(mount->type));
    sample_row_integer(row, FILESYSTEM_SIZE, usage->size_bytes);
    sample_row_integer(row, FILESYSTEM_USED, usage->used_bytes);
    sample_row_integer(row, FILESYSTEM_AVAILABLE, usage->available_bytes);
    if (usage->files > 0) {
        sample_row_integer(row, FILESYSTEM_FILES, usage->files);
        sample_row_integer(row, FILESYSTEM_FILES_USED, usage->files_used);
    }
    sample_row_integer(row, FILESYSTEM_IS_READ_ONLY, usage->is_read_only ? 1 : 0);
}

static int filesystem_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    int rc = filesystem_update_list(collector, err);
    if (rc < 0)
        return rc;
    rc = probe_tick(collector->probe, now_boot_ns, err);
    if (rc < 0)
        return rc;
    sample_table_begin(&collector->table);
    for (size_t i = 0; i < collector->mounts.count; i++) {
        if (collector->watches[i].key == NULL)
            continue;
        struct filesystem_usage usage;
        struct probe_result result = probe_latest(collector->watches[i].key, &usage);
        if (result.state == PROBE_ANSWERED && result.status == 0 && usage.size_bytes > 0)
            filesystem_fill_row(&collector->table, &collector->mounts.list[i], &usage);
    }
    sample_table_end(&collector->table);
    return 0;
}

static const struct sample_table *filesystem_table(const struct collector *collector)
{
    return &collector->table;
}

/* Is a failure worth a word? Other users' FUSE mounts refuse root, and mounts vanish: neither is anybody's fault. */
static bool filesystem_is_worth_saying(int status)
{
    return status != 0 && status != -EACCES && status != -EPERM && status != -ENOENT;
}

/* Begins a line about a mount; what would break the line is left out. */
static void filesystem_name(const struct mount *mount, struct buf *out)
{
    buf_char(out, '\'');
    for (const char *at = mount->point; *at != '\0'; at++)
        buf_char(out, (unsigned char)*at < ' ' ? '?' : *at);
    buf_printf(out, "' (%s)", mount->type);
}

static void filesystem_take_notes(struct collector *collector, struct buf *out)
{
    for (size_t i = 0; i < collector->mounts.count; i++) {
        struct filesystem_watch *watch = &collector->watches[i];
        const struct mount *mount = &collector->mounts.list[i];
        if (watch->key == NULL)
            continue;
        bool is_stuck;
        if (probe_has_turned(watch->key, &is_stuck)) {
            filesystem_name(mount, out);
            buf_text(out, is_stuck ? " doesn't answer: left out until it does\n" : " answers again\n");
        }
        struct filesystem_usage usage;
        struct probe_result result = probe_latest(watch->key, &usage);
        if (result.state == PROBE_ANSWERED && result.status != watch->status_said) {
            watch->status_said = result.status;
            if (!filesystem_is_worth_saying(result.status))
                continue;
            char words[128];
            filesystem_name(mount, out);
            buf_printf(out, " has no numbers: %s\n", strerror_r(-result.status, words, sizeof words));
        }
    }
}

const struct collector_ops filesystem_collector = {
    .name = "filesystem",
    .help = "size and use of mounted file systems, and their inodes",
    .open = filesystem_open,
    .read = filesystem_read,
    .table = filesystem_table,
    .take_notes = filesystem_take_notes,
    .close = filesystem_close,
};
