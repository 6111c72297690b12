/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/start.h"

#include "client/sys.h"
#include "client/text.h"

enum { START_TEXT_BYTES = 1024, START_PATH_BYTES = 64, START_FIELDS_BEFORE = 20 };

uint64_t start_ticks(const char *process, size_t process_bytes)
{
    char path_bytes[START_PATH_BYTES];
    struct text path = text_in(path_bytes, sizeof path_bytes);
    text_add(&path, "/proc/");
    text_add_bytes(&path, process, process_bytes);
    text_add(&path, "/stat");
    if (path.is_cut)
        return 0;
    char text[START_TEXT_BYTES];
    int fd = sys_open(AT_FDCWD, text_end(&path), O_RDONLY, 0);
    long got = fd < 0 ? 0 : sys_read(fd, text, sizeof text);
    sys_close(fd);
    long at = got > 0 ? got : 0;
    while (at > 0 && text[at - 1] != ')') /* the name before it may hold blanks and parentheses */
        at--;
    int blanks = 0; /* field 3 follows the first blank after the name */
    while (at < got && blanks < START_FIELDS_BEFORE)
        blanks += text[at++] == ' ';
    uint64_t ticks = 0;
    for (; at < got && text[at] >= '0' && text[at] <= '9'; at++)
        ticks = ticks * 10 + (uint64_t)(text[at] - '0');
    return ticks;
}
