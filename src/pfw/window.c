/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW_READ_BYTES = 256 << 10,
    WINDOW_SLACK_BYTES = 4 << 20,
    WINDOW_CHEAP_BYTES = 64 << 10, /* so little is moved at once, which keeps the window small and in the cache */
};

int pfw_window_init(struct pfw_window *window, int fd, struct error *err)
{
    *window = (struct pfw_window){.fd = fd, .capacity = PFW_WINDOW_KEEP_MAX_BYTES + WINDOW_SLACK_BYTES};
    window->data = malloc(window->capacity); /* most of its pages are touched only when much has to be kept */
    if (window->data == NULL)
        return error_set(err, -ENOMEM, "window of a trace");
    return 0;
}

void pfw_window_fini(struct pfw_window *window)
{
    free(window->data);
    window->data = NULL;
    fd_cleanup(&window->fd);
    window->fd = -1;
}

static void window_make_room(struct pfw_window *window)
{
    size_t keep = window->mark;
    if (window->length - keep > PFW_WINDOW_KEEP_MAX_BYTES && window->at > keep) {
        size_t newest = window->length - PFW_WINDOW_KEEP_MAX_BYTES;
        keep = newest < window->at ? newest : window->at;
    }
    if (window->length - keep > WINDOW_CHEAP_BYTES && window->capacity - window->length >= WINDOW_READ_BYTES)
        return;
    memmove(window->data, window->data + keep, window->length - keep);
    window->base += keep;
    window->at -= keep;
    window->length -= keep;
    window->mark = window->mark > keep ? window->mark - keep : 0;
}

int pfw_window_fill(struct pfw_window *window, struct error *err)
{
    if (window->is_at_end)
        return 0;
    window_make_room(window);
    size_t room = window->capacity - window->length;
    if (room > WINDOW_READ_BYTES)
        room = WINDOW_READ_BYTES;
    assert(room > 0); /* whoever lets 4 MiB lie untaken and asks for more never ends */
    ssize_t got;
    do {
        got = read(window->fd, window->data + window->length, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_errno(err, "reading");
    window->is_at_end = got == 0;
    window->length += (size_t)got;
    return 0;
}

int pfw_window_need(struct pfw_window *window, size_t bytes, struct error *err)
{
    while (pfw_window_left(window) < bytes && !window->is_at_end) {
        int rc = pfw_window_fill(window, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void pfw_window_seek(struct pfw_window *window, uint64_t offset)
{
    window->at = offset > window->base ? (size_t)(offset - window->base) : 0;
    if (window->at > window->length)
        window->at = window->length;
    if (window->mark > window->at)
        window->mark = window->at;
}
