/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line of /proc/self/mounts (proc(5), fstab(5)) has six fields with one blank between them; in the first four,
 * blanks, tabs, newlines, '\' and '#' are written as '\' and three octal digits:
 *
 *     server:/export /mnt/my\040data nfs4 rw,relatime 0 0
 *     device         point           type options
 */
#include "sample/mounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cursor.h"

/* Types that hold nobody's files, and images, which are always full. Autofs would mount at being asked. */
static const char *const mounts_types_skipped[] = {
    "anon_inodefs",
    "apparmorfs",
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "cramfs",
    "debugfs",
    "devfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "functionfs",
    "fuse.lxcfs",
    "fusectl",
    "fuse.gvfsd-fuse",
    "fuse.portal",
    "fuse.snapfuse",
    "fuse.squashfuse",
    "fuse.squashfuse_ll",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nfsd",
    "nsfs",
    "ocfs2_dlmfs",
    "oprofilefs",
    "pipefs",
    "proc",
    "pstore",
    "resctrl",
    "romfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sockfs",
    "squashfs",
    "sysfs",
    "tracefs",
    "usbdevfs",
    "usbfs",
    "xenfs",
};

/* Directories whose mounts belong to the kernel, or come and go with each container. */
static const char *const mounts_directories_skipped[] = {
    "/dev",
    "/proc",
    "/run/containerd",
    "/run/credentials",
    "/run/docker",
    "/sys",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
};

/* Types of which each mount is a file system of its own, whatever its device is called. */
static const char *const mounts_types_without_device[] = {"overlay", "ramfs", "rootfs", "tmpfs"};

struct mounts_line { /* borrows the text; with its escapes, which the kernel always writes alike */
    struct cursor device;
    struct cursor point;
    struct cursor type;
};

static bool mounts_is_among(const struct cursor *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cursor_equals(text, words[i]))
            return true;
    }
    return false;
}

/* Takes the text up to the next single blank: an empty field is one, too (a device may have no name). */
static struct cursor mounts_field(struct cursor *line)
{
    struct cursor field = *line;
    const char *blank = cursor_is_empty(line) ? NULL : memchr(line->at, ' ', cursor_left(line));
    field.end = blank != NULL ? blank : line->end;
    line->at = blank != NULL ? blank + 1 : line->end;
    return field;
}

static bool mounts_octal(const char *at, char *out_character)
{
    unsigned number = 0;
    for (int i = 0; i < 3; i++) {
        unsigned digit = (unsigned char)(at[i] - '0');
        if (digit > 7)
            return false;
        number = number * 8 + digit;
    }
    if (number == 0 || number > 0xff) /* NUL can't be in a path */
        return false;
    *out_character = (char)(unsigned char)number;
    return true;
}

/* The text without escapes, NUL-terminated; NULL without memory. */
static char *mounts_unescape(const struct cursor *field)
{
    char *text = malloc(cursor_left(field) + 1);
    if (text == NULL)
        return NULL;
    char *to = text;
    for (const char *at = field->at; at < field->end;) {
        if (*at == '\\' && field->end - at >= 4 && mounts_octal(at + 1, to)) {
            at += 4;
            to++;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return text;
}

/* Is `path` the directory or below it? */
static bool mounts_is_below(const struct cursor *path, const char *directory)
{
    struct cursor rest = *path;
    return cursor_accept_text(&rest, directory) && (cursor_is_empty(&rest) || *rest.at == '/');
}

static bool mounts_is_wanted(const struct cursor *point, const struct cursor *type)
{
    if (cursor_is_empty(type) || cursor_is_empty(point) || *point->at != '/')
        return false; /* "none" of a detached mount */
    if (mounts_is_among(type, mounts_types_skipped, ARRAY_LENGTH(mounts_types_skipped)))
        return false;
    if (cursor_equals(type, "overlay"))
        return cursor_equals(point, "/");
    if (cursor_equals(point, "/dev/shm"))
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(mounts_directories_skipped); i++) {
        if (mounts_is_below(point, mounts_directories_skipped[i]))
            return false;
    }
    return true;
}

/* Does the device's name tell the file system? FUSE programs call theirs as they like. */
static bool mounts_has_device(const struct mounts_line *line)
{
    struct cursor type = line->type;
    if (cursor_is_empty(&line->device) || cursor_equals(&line->device, "none"))
        return false;
    if (cursor_equals(&type, "fuse") || cursor_accept_text(&type, "fuse."))
        return false;
    return !mounts_is_among(&line->type, mounts_types_without_device, ARRAY_LENGTH(mounts_types_without_device));
}

static bool mounts_is_same(const struct cursor *a, const struct cursor *b)
{
    return cursor_left(a) == cursor_left(b) && memcmp(a->at, b->at, cursor_left(a)) == 0;
}

/* Takes line by line; a newer mount removes an older one of the same point even if it isn't wanted itself. */
static size_t mounts_collect(struct cursor text, struct mounts_line *lines, size_t *refused)
{
    size_t count = 0;
    struct cursor rest;
    while (cursor_line(&text, &rest)) {
        struct mounts_line line;
        if (memchr(rest.at, '\0', cursor_left(&rest)) != NULL)
            continue; /* no text of the kernel's */
        line.device = mounts_field(&rest);
        line.point = mounts_field(&rest);
        line.type = mounts_field(&rest);
        for (size_t i = 0; i < count; i++) {
            if (!mounts_is_same(&lines[i].point, &line.point))
                continue;
            count--;
            memmove(&lines[i], &lines[i + 1], (count - i) * sizeof lines[0]);
            break; /* there is one at most: it removed those before it */
        }
        if (!mounts_is_wanted(&line.point, &line.type))
            continue;
        if (count < MOUNTS_MAX)
            lines[count++] = line;
        else
            ++*refused;
    }
    return count;
}

/* Is the file system of line `index` listed under a shorter point, or under one as short before it? */
static bool mounts_is_double(const struct mounts_line *lines, size_t count, size_t index)
{
    const struct mounts_line *line = &lines[index];
    if (!mounts_has_device(line))
        return false;
    size_t length = cursor_left(&line->point);
    for (size_t i = 0; i < count; i++) {
        size_t other_length = cursor_left(&lines[i].point);
        if ((other_length < length || (other_length == length && i < index)) &&
            mounts_is_same(&lines[i].device, &line->device) && mounts_is_same(&lines[i].type, &line->type))
            return true;
    }
    return false;
}

static int mounts_copy(const struct mounts_line *lines, size_t count, struct mounts *mounts)
{
    for (size_t i = 0; i < count; i++) {
        if (mounts_is_double(lines, count, i))
            continue;
        struct mount *mount = &mounts->list[mounts->count++];
        mount->point = mounts_unescape(&lines[i].point);
        mount->device = mounts_unescape(&lines[i].device);
        mount->type = mounts_unescape(&lines[i].type);
        if (mount->point == NULL || mount->device == NULL || mount->type == NULL)
            return -ENOMEM;
    }
    return 0;
}

int mounts_parse(const char *text, size_t length, struct mounts *out_mounts, struct error *err)
{
    *out_mounts = (struct mounts){0};
    CLEANUP(memory_cleanup) struct mounts_line *lines = malloc(MOUNTS_MAX * sizeof *lines);
    if (lines == NULL)
        return error_set(err, -ENOMEM, "no memory for the list of mounts");
    struct mounts mounts = {0};
    size_t count = mounts_collect(cursor_of(text, length), lines, &mounts.refused);
    mounts.list = calloc(count + 1, sizeof *mounts.list); /* never of size 0, which may give NULL */
    if (mounts.list == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu mounts", count);
    if (mounts_copy(lines, count, &mounts) < 0) {
        mounts_fini(&mounts);
        return error_set(err, -ENOMEM, "no memory for %zu mounts", count);
    }
    *out_mounts = mounts;
    return 0;
}

void mounts_fini(struct mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++) {
        free(mounts->list[i].point);
        free(mounts->list[i].device);
        free(mounts->list[i].type);
    }
    free(mounts->list);
    *mounts = (struct mounts){0};
}
