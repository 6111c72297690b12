/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of any bytes: reading ends, gives lines within their limit, and tells gaps that lie within the file. The first
 * byte chooses how much is held, how long a line may be, and whether damage is salvaged.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "pfw/reader.h"
#include "util/file.h"

static void check_line(const struct pfw_item *item, size_t line_max_bytes)
{
    assert(item->length > 0 && item->length <= line_max_bytes);
    assert(memchr(item->text, '\n', item->length) == NULL);
    assert(item->number > 0);
}

static void check_gap(const struct pfw_gap *gap, size_t size)
{
    assert(gap->length > 0);
    if (gap->kind != PFW_GAP_LONG_LINE) /* that one counts in text */
        assert(gap->offset <= size && gap->length <= size - gap->offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned choice = data[0];
    const struct pfw_reader_options options = {
        .unpack = {.is_salvaging = (choice & 1) != 0, .hold_max_bytes = (size_t)1 << (choice >> 1 & 15)},
        .line_max_bytes = (size_t)8 << (choice >> 5),
    };
    int fd = memfd_create("trace", MFD_CLOEXEC);
    assert(fd >= 0);
    int rc = file_write_all(fd, data + 1, size - 1, NULL);
    assert(rc == 0 && lseek(fd, 0, SEEK_SET) == 0);

    CLEANUP(pfw_reader_cleanup) struct pfw_reader *reader = NULL;
    rc = pfw_reader_open_fd(fd, &options, &reader, NULL);
    assert(rc == 0);
    for (struct pfw_item item = {.kind = PFW_ITEM_LINE}; item.kind != PFW_ITEM_END;) {
        rc = pfw_reader_next(reader, &item, NULL);
        assert(rc == 0);
        if (item.kind == PFW_ITEM_LINE)
            check_line(&item, options.line_max_bytes);
        if (item.kind == PFW_ITEM_GAP)
            check_gap(&item.gap, size - 1);
    }
    assert(pfw_reader_status(reader).unpack.file_bytes == size - 1);
    return 0;
}
