/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line of /proc/net/tcp (Linux: Documentation/networking/proc_net_tcp.rst):
 *
 *   0: 0100007F:0539 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 …
 *   slot local:port   remote       state   queues         timer      retries   uid
 */
#include "proxy/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/file.h"

enum { PORTS_FILE_MAX_BYTES = 64 << 20, PORTS_WORD_UID = 7, PORTS_LISTEN_STATE = 3 };

static bool ports_is_listening_at(const struct cursor *local, const struct cursor *state, uint16_t port)
{
    char wanted[8];
    (void)snprintf(wanted, sizeof wanted, ":%04X", port); /* fits */
    size_t length = strlen(wanted);
    return cursor_left(local) > length && memcmp(local->end - length, wanted, length) == 0 &&
           cursor_equals(state, "0A");
}

int ports_find(struct cursor text, uint16_t port, uid_t *out_uid)
{
    struct cursor line;
    while (cursor_line(&text, &line)) {
        struct cursor words[PORTS_WORD_UID + 1];
        size_t count = 0;
        while (count < ARRAY_LENGTH(words) && cursor_word(&line, &words[count]))
            count++;
        if (count < ARRAY_LENGTH(words) || !ports_is_listening_at(&words[1], &words[PORTS_LISTEN_STATE], port))
            continue;
        uint64_t uid;
        if (!cursor_u64(&words[PORTS_WORD_UID], &uid) || uid >= UINT32_MAX)
            continue;
        *out_uid = (uid_t)uid;
        return 0;
    }
    return -ENOENT;
}

int ports_owner(uint16_t port, uid_t *out_uid, struct error *err)
{
    static const char *const paths[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        CLEANUP(buf_cleanup) struct buf text;
        buf_init(&text, PORTS_FILE_MAX_BYTES);
        if (file_read(AT_FDCWD, paths[i], &text, NULL) == 0 &&
            ports_find(cursor_of(text.data, text.length), port, out_uid) == 0)
            return 0;
    }
    return error_set(err, -ENOENT, "no socket that listens on port %u can be seen", port);
}
