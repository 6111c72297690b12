/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/network.h"

#include <errno.h>
#include <string.h>

#include "sample/link_names.h"
#include "sample/proctable.h"
#include "util/cursor.h"
#include "util/log.h"

/* Numbers of a line that we look at; the kernel has had 16 for ever. */
enum { NETWORK_FIELDS_MAX = 64 };

static const struct sample_column network_columns[NETWORK_COLUMNS] = {
    [NETWORK_BYTES_RECV] = {"bytes_recv", "bytes", "received", SAMPLE_COUNTER},
    [NETWORK_PACKETS_RECV] = {"packets_recv", "", "packets received", SAMPLE_COUNTER},
    [NETWORK_RX_ERRORS] = {"rx_errors", "", "packets received with an error", SAMPLE_COUNTER},
    [NETWORK_RX_DROPPED] = {"rx_dropped", "", "packets received and dropped", SAMPLE_COUNTER},
    [NETWORK_BYTES_SENT] = {"bytes_sent", "bytes", "sent", SAMPLE_COUNTER},
    [NETWORK_PACKETS_SENT] = {"packets_sent", "", "packets sent", SAMPLE_COUNTER},
    [NETWORK_TX_ERRORS] = {"tx_errors", "", "packets that failed to be sent", SAMPLE_COUNTER},
    [NETWORK_TX_DROPPED] = {"tx_dropped", "", "packets dropped instead of sent", SAMPLE_COUNTER},
    [NETWORK_COLLISIONS] = {"collisions", "", "collisions while sending", SAMPLE_COUNTER},
    [NETWORK_MULTICAST_RECV] = {"multicast_recv", "", "multicast packets received", SAMPLE_COUNTER},
    [NETWORK_RX_FIFO_ERRORS] = {"rx_fifo_errors", "", "packets lost since a receive queue was full", SAMPLE_COUNTER},
    [NETWORK_RX_FRAME_ERRORS] = {"rx_frame_errors", "", "packets received of a wrong size or form", SAMPLE_COUNTER},
    [NETWORK_TX_FIFO_ERRORS] = {"tx_fifo_errors", "", "packets lost since a send queue was full", SAMPLE_COUNTER},
    [NETWORK_TX_CARRIER_ERRORS] = {"tx_carrier_errors", "", "packets lost since the link was down", SAMPLE_COUNTER},
};

/* The header's word for each column, by side: "Receive" is the first, "Transmit" the second. */
static const struct {
    enum network_column column;
    unsigned side;
    const char *word;
} network_words[] = {
    {NETWORK_BYTES_RECV, 1, "bytes"},         {NETWORK_PACKETS_RECV, 1, "packets"},
    {NETWORK_RX_ERRORS, 1, "errs"},           {NETWORK_RX_DROPPED, 1, "drop"},
    {NETWORK_RX_FIFO_ERRORS, 1, "fifo"},      {NETWORK_RX_FRAME_ERRORS, 1, "frame"},
    {NETWORK_MULTICAST_RECV, 1, "multicast"}, {NETWORK_BYTES_SENT, 2, "bytes"},
    {NETWORK_PACKETS_SENT, 2, "packets"},     {NETWORK_TX_ERRORS, 2, "errs"},
    {NETWORK_TX_DROPPED, 2, "drop"},          {NETWORK_TX_FIFO_ERRORS, 2, "fifo"},
    {NETWORK_COLLISIONS, 2, "colls"},         {NETWORK_TX_CARRIER_ERRORS, 2, "carrier"},
};

/* Which column each number of a line is. */
struct network_header {
    size_t columns[NETWORK_FIELDS_MAX]; /* [count]; NETWORK_COLUMNS: none of ours */
    size_t count;
};

int network_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, network_columns, NETWORK_COLUMNS, 0, err);
}

/* Takes the next word, which also ends at a '|'; counts the '|' before it. */
static bool network_header_word(struct cursor *line, unsigned *side, struct cursor *out_word)
{
    for (;; line->at++) {
        cursor_skip_blanks(line);
        if (cursor_is_empty(line))
            return false;
        if (*line->at != '|')
            break;
        (*side)++;
    }
    out_word->at = line->at;
    while (!cursor_is_empty(line) && *line->at != '|' && *line->at != ' ' && *line->at != '\t')
        line->at++;
    out_word->end = line->at;
    return true;
}

static size_t network_column_of(unsigned side, const struct cursor *word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(network_words); i++) {
        if (network_words[i].side == side && cursor_equals(word, network_words[i].word))
            return network_words[i].column;
    }
    return NETWORK_COLUMNS;
}

/*
 * Takes " face |bytes packets errs …|bytes packets …" apart. Of the two lines of the header it is the one that says
 * what the numbers are: it knows a word of each side.
 */
static bool network_take_header(struct cursor line, struct network_header *out_header)
{
    *out_header = (struct network_header){0};
    bool has_side[3] = {false, false, false};
    unsigned side = 0;
    struct cursor word;
    while (network_header_word(&line, &side, &word)) {
        if (side == 0)
            continue;
        if (out_header->count == NETWORK_FIELDS_MAX)
            return false;
        size_t column = network_column_of(side, &word);
        if (column < NETWORK_COLUMNS)
            has_side[side] = true;
        out_header->columns[out_header->count++] = column;
    }
    return has_side[1] && has_side[2];
}

/* Takes "  eth0" off the front of a line; the colon that ends it is the last of the line. */
static bool network_take_name(struct cursor *line, struct cursor *out_name)
{
    const char *colon = memrchr(line->at, ':', cursor_left(line));
    if (colon == NULL)
        return false;
    *out_name = (struct cursor){.at = line->at, .end = colon};
    cursor_skip_blanks(out_name); /* the kernel pads short names on the left */
    line->at = colon + 1;
    return !cursor_is_empty(out_name);
}

/* One line; false when it makes no sense. */
static bool network_parse_line(struct cursor line, const struct network_header *header, struct sample_table *table)
{
    struct cursor name;
    if (!network_take_name(&line, &name))
        return false;
    if (cursor_equals(&name, "lo"))
        return true;
    uint64_t numbers[NETWORK_FIELDS_MAX];
    size_t count;
    /* Fewer numbers than the header has names are a line that has been cut. */
    bool is_good = procfile_numbers(&line, numbers, header->count, &count) && count == header->count;
    struct sample_row *row =
        sample_table_row(table, name.at, cursor_left(&name)); /* a bad line's row keeps its totals */
    if (row == NULL || !is_good)
        return row == NULL;
    for (size_t i = 0; i < count; i++) {
        if (header->columns[i] < NETWORK_COLUMNS)
            sample_row_count(row, header->columns[i], numbers[i]);
    }
    return true;
}

int network_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct cursor all = cursor_of(text, length);
    struct cursor line;
    struct network_header header;
    bool has_header = false;
    while (!has_header && cursor_line(&all, &line))
        has_header = network_take_header(line, &header);
    if (!has_header)
        return error_set(err, -EBADMSG, "no header like 'face |bytes packets …|bytes packets …'");

    sample_table_begin(table);
    while (cursor_line(&all, &line)) {
        if (!network_parse_line(line, &header, table))
            table->lines_bad++;
    }
    sample_table_end(table);
    return 0;
}

/* Recorded interfaces don't change names, and this node's are not theirs. */
static int network_listen(const struct sample_config *config, struct collector *collector, struct error *err)
{
    if (strcmp(config->proc_path, "/proc") != 0)
        return 0;
    struct link_names *names = NULL;
    struct error why = {0};
    int rc = link_names_new(config->sys_path, &names, &why);
    if (rc == -ENOMEM)
        return error_set(err, rc, "%s", why.text);
    if (rc < 0)
        log_debug("network: interfaces that change names are taken for one another: %s", why.text);
    collector->own = names;
    return 0;
}

static int network_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    /* "net" is a link to the reader's own name space, "self/net"; a recorded tree may have only one of the two. */
    int rc = proctable_open(config, "net/dev", network_columns, NETWORK_COLUMNS, out_collector, err);
    if (rc == -ENODEV)
        rc = proctable_open(config, "self/net/dev", network_columns, NETWORK_COLUMNS, out_collector, err);
    if (rc == -ENODEV)
        return error_set(err, rc, "no '%s/net/dev'", config->proc_path);
    if (rc < 0)
        return rc;
    rc = network_listen(config, *out_collector, err);
    if (rc < 0)
        proctable_close(TAKE(*out_collector));
    return rc;
}

static void network_on_moved(void *table, const char *name)
{
    sample_table_restart(table, name);
}

/*
 * May a name mean another interface than in the tick before? Then one came or went, or the one with fewer bytes took
 * the place of one with more: only then the kernel is asked, as a system call in each tick would be a part of its cost.
 */
static bool network_is_irregular(const struct sample_table *table, size_t rows_before)
{
    bool is_irregular = table->rows_count != rows_before;
    for (size_t i = 0; i < table->rows_count && !is_irregular; i++)
        is_irregular = table->rows[i]->is_first || table->rows[i]->has_fallen;
    return is_irregular;
}

static int network_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    size_t rows_before = collector->table.rows_count;
    int rc = proctable_read(collector, network_parse, err);
    struct link_names *names = collector->own;
    if (rc == 0 && names != NULL &&
        (network_is_irregular(&collector->table, rows_before) || link_names_is_moving(names)))
        link_names_look(names, network_on_moved, &collector->table);
    return rc;
}

static void network_close(struct collector *collector)
{
    if (collector != NULL)
        link_names_free(collector->own);
    proctable_close(collector);
}

const struct collector_ops network_collector = {
    .name = "network",
    .help = "what each network interface sent and received (/proc/net/dev)",
    .open = network_open,
    .read = network_read,
    .table = proctable_table,
    .close = network_close,
};
