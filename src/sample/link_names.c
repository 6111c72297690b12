/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/link_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/cursor.h"
#include "util/file.h"

enum {
    LINKS_MAX = 65536,
    LINKS_FIRST = 16,
    LINKS_INDEX_TEXT_MAX_BYTES = 32,
    LINKS_MESSAGES_MAX_BYTES = 65536, /* the kernel's are at most 32 KiB */
    LINKS_LOOKS = 2,                  /* see link_names_look() */
};

struct link {
    int index; /* the interface's number, which it keeps */
    char name[IF_NAMESIZE];
    int looks_left; /* in which its name is still told */
};

struct link_names {
    int fd;
    const char *sys_path;
    struct link *links;
    size_t count, capacity;
    bool is_moving;
    char messages[LINKS_MESSAGES_MAX_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

static struct link *links_find(struct link_names *names, int index)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->links[i].index == index)
            return &names->links[i];
    }
    return NULL;
}

static void links_remove(struct link_names *names, struct link *link)
{
    *link = names->links[--names->count];
}

/* A place for one more; NULL without memory, or past LINKS_MAX. */
static struct link *links_add(struct link_names *names, int index)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity == 0 ? LINKS_FIRST : 2 * names->capacity;
        struct link *links = capacity <= LINKS_MAX ? realloc(names->links, capacity * sizeof *links) : NULL;
        if (links == NULL)
            return NULL;
        names->links = links;
        names->capacity = capacity;
    }
    struct link *link = &names->links[names->count++];
    *link = (struct link){.index = index};
    return link;
}

/* Interface `index` is called `name`, and nobody else is. False without memory for one more. */
static bool links_set(struct link_names *names, int index, const char *name)
{
    bool has_moved = false;
    for (size_t i = names->count; i-- > 0;) {
        if (names->links[i].index != index && strcmp(names->links[i].name, name) == 0) {
            links_remove(names, &names->links[i]); /* it has another name by now, or is gone */
            has_moved = true;
        }
    }
    struct link *link = links_find(names, index);
    if (link != NULL && strcmp(link->name, name) != 0)
        has_moved = true;
    if (link == NULL)
        link = links_add(names, index);
    if (link == NULL)
        return names->count >= LINKS_MAX; /* so many are not this node's trouble: renames of the rest go unnoticed */
    (void)snprintf(link->name, sizeof link->name, "%s", name);
    if (has_moved)
        link->looks_left = LINKS_LOOKS;
    return true;
}

/* Reads who has which name from /sys/class/net. 0, or -ENOMEM. */
static int links_scan(struct link_names *names)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/class/net", names->sys_path);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return errno == ENOMEM ? -ENOMEM : 0;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, LINKS_INDEX_TEXT_MAX_BYTES);
    int rc = 0;
    const struct dirent *entry;
    while (rc != -ENOMEM && (entry = readdir(directory)) != NULL) {
        int length = snprintf(path, sizeof path, "%s/ifindex", entry->d_name);
        buf_reset(&text);
        if (entry->d_name[0] == '.' || length >= (int)sizeof path || strlen(entry->d_name) >= IF_NAMESIZE)
            continue;
        rc = file_read(dirfd(directory), path, &text, NULL);
        if (rc < 0)
            continue; /* no interface, or one that has just gone */
        struct cursor cursor = cursor_of(text.data, text.length);
        uint64_t index;
        if (cursor_u64(&cursor, &index) && index <= INT_MAX && !links_set(names, (int)index, entry->d_name))
            rc = -ENOMEM;
    }
    (void)closedir(directory);
    return rc == -ENOMEM ? rc : 0;
}

int link_names_new(const char *sys_path, struct link_names **out_names, struct error *err)
{
    CLEANUP(link_names_cleanup) struct link_names *names = calloc(1, sizeof *names);
    if (names == NULL)
        return error_set(err, -ENOMEM, "no memory for names of interfaces");
    names->sys_path = sys_path;
    names->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    if (names->fd < 0 || bind(names->fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return error_errno(err, "listening to changes of network interfaces");
    if (links_scan(names) < 0) /* after the socket: nothing is missed between the two */
        return error_set(err, -ENOMEM, "no memory for names of interfaces");
    *out_names = TAKE(names);
    return 0;
}

void link_names_free(struct link_names *names)
{
    if (names == NULL)
        return;
    if (names->fd >= 0)
        close(names->fd);
    free(names->links);
    free(names);
}

/* What one message of the kernel says of an interface. */
static void links_take(struct link_names *names, const struct nlmsghdr *message)
{
    if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
        return;
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
        return;
    const char *bytes = (const char *)message;
    const struct ifinfomsg *info = (const void *)(bytes + NLMSG_HDRLEN);
    if (info->ifi_family != AF_UNSPEC)
        return; /* a bridge's word on one of its ports */
    if (message->nlmsg_type == RTM_DELLINK) {
        struct link *link = links_find(names, info->ifi_index);
        if (link != NULL)
            links_remove(names, link);
        return;
    }
    size_t at = NLMSG_SPACE(sizeof *info);
    while (at + sizeof(struct rtattr) <= message->nlmsg_len) {
        const struct rtattr *attribute = (const void *)(bytes + at);
        if (attribute->rta_len < sizeof *attribute || attribute->rta_len > message->nlmsg_len - at)
            return;
        const char *name = bytes + at + RTA_LENGTH(0);
        size_t length = attribute->rta_len - RTA_LENGTH(0);
        if (attribute->rta_type == IFLA_IFNAME && strnlen(name, length) < length && length <= IF_NAMESIZE)
            (void)links_set(names, info->ifi_index, name); /* without memory its renames go unnoticed */
        at += RTA_ALIGN(attribute->rta_len);
    }
}

/* All that the kernel has said since the last look. */
static void links_listen(struct link_names *names)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        socklen_t from_bytes = sizeof from;
        ssize_t got = recvfrom(names->fd, names->messages, sizeof names->messages, MSG_DONTWAIT,
                               (struct sockaddr *)&from, &from_bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == ENOBUFS) { /* it said more than there was room for */
            (void)links_scan(names);       /* without memory some renames go unnoticed */
            continue;
        }
        if (got <= 0)
            return;
        if (from.nl_pid != 0)
            continue; /* only the kernel's word counts */
        size_t at = 0;
        while (at + sizeof(struct nlmsghdr) <= (size_t)got) {
            const struct nlmsghdr *message = (const void *)(names->messages + at);
            if (message->nlmsg_len < sizeof *message || message->nlmsg_len > (size_t)got - at)
                break;
            links_take(names, message);
            at += NLMSG_ALIGN(message->nlmsg_len);
        }
    }
}

void link_names_look(struct link_names *names, void (*on_moved)(void *context, const char *name), void *context)
{
    links_listen(names);
    names->is_moving = false;
    for (size_t i = 0; i < names->count; i++) {
        struct link *link = &names->links[i];
        if (link->looks_left == 0)
            continue;
        link->looks_left--;
        names->is_moving = true;
        on_moved(context, link->name);
    }
}

bool link_names_is_moving(const struct link_names *names)
{
    return names->is_moving;
}
