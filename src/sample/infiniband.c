/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters are those of the InfiniBand Architecture Specification (PortCounters, PortCountersExtended) and of the
 * kernel's Documentation/ABI/stable/sysfs-class-infiniband. Many have only 16 or 32 bits in older devices and then stay
 * at their highest value; where a device tells them in 64 bits, too (counters_ext/ of older drivers), those are taken.
 */
#include "sample/infiniband.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/devices.h"

enum {
    INFINIBAND_PORTS_MAX = 64,
    INFINIBAND_BYTES_PER_WORD = 4,
    INFINIBAND_FILES_PER_COUNTER = 2,
    INFINIBAND_FILE_MAX_BYTES = 128
};

/* A counter, and where it is found below the port's directory: the first of the files that is there counts. */
struct infiniband_counter {
    struct sample_column column;
    const char *files[INFINIBAND_FILES_PER_COUNTER];
    unsigned factor;
};

#define INFINIBAND_COUNTER(name, help, ...)                                                                            \
    {                                                                                                                  \
        {name, "", help, SAMPLE_COUNTER}, {__VA_ARGS__}, 1                                                             \
    }

static const struct infiniband_counter infiniband_counters[] = {
    {{"bytes_recv", "bytes", "data received", SAMPLE_COUNTER},
     {"counters_ext/port_rcv_data_64", "counters/port_rcv_data"},
     INFINIBAND_BYTES_PER_WORD},
    {{"bytes_sent", "bytes", "data sent", SAMPLE_COUNTER},
     {"counters_ext/port_xmit_data_64", "counters/port_xmit_data"},
     INFINIBAND_BYTES_PER_WORD},
    INFINIBAND_COUNTER("packets_recv", "packets received", "counters_ext/port_rcv_packets_64",
                       "counters/port_rcv_packets"),
    INFINIBAND_COUNTER("packets_sent", "packets sent", "counters_ext/port_xmit_packets_64",
                       "counters/port_xmit_packets"),
    INFINIBAND_COUNTER("recv_errors", "packets received with an error", "counters/port_rcv_errors"),
    INFINIBAND_COUNTER("recv_remote_errors", "packets marked bad by a switch before",
                       "counters/port_rcv_remote_physical_errors"),
    INFINIBAND_COUNTER("send_discards", "packets dropped instead of sent", "counters/port_xmit_discards"),
    INFINIBAND_COUNTER("send_wait", "ticks in which data waited and nothing could be sent", "counters/port_xmit_wait"),
    INFINIBAND_COUNTER("symbol_errors", "minor errors on the lanes", "counters/symbol_error"),
    INFINIBAND_COUNTER("link_integrity_errors", "times that too many local errors came at once",
                       "counters/local_link_integrity_errors"),
    INFINIBAND_COUNTER("link_recoveries", "times that the link recovered from errors", "counters/link_error_recovery"),
    INFINIBAND_COUNTER("link_downed", "times that the link failed to recover and went down", "counters/link_downed"),
    INFINIBAND_COUNTER("buffer_overruns", "times that packets found no buffer",
                       "counters/excessive_buffer_overrun_errors"),
    INFINIBAND_COUNTER("out_of_buffer", "packets dropped for want of a receive request", "hw_counters/out_of_buffer"),
    INFINIBAND_COUNTER("out_of_sequence", "packets that came out of order", "hw_counters/out_of_sequence"),
    INFINIBAND_COUNTER("sequence_errors", "times that the peer asked for missing packets",
                       "hw_counters/packet_seq_err"),
    INFINIBAND_COUNTER("ack_timeouts", "times that no acknowledgement came in time",
                       "hw_counters/local_ack_timeout_err"),
    INFINIBAND_COUNTER("rnr_retries", "times that the peer was not ready and all retries were used",
                       "hw_counters/rnr_nak_retry_err"),
    INFINIBAND_COUNTER("congestion_sent", "congestion notifications sent", "hw_counters/np_cnp_sent"),
    INFINIBAND_COUNTER("congestion_handled", "congestion notifications that slowed us down",
                       "hw_counters/rp_cnp_handled"),
    INFINIBAND_COUNTER("ecn_marked", "RoCE packets that a switch marked for congestion",
                       "hw_counters/np_ecn_marked_roce_packets"),
};

enum { INFINIBAND_COLUMNS = ARRAY_LENGTH(infiniband_counters) };

struct infiniband_port {
    char *row;
    size_t state_file;
    size_t rate_file;
    size_t files[INFINIBAND_COLUMNS];
    bool has_file[INFINIBAND_COLUMNS];
};

struct infiniband_ports {
    size_t count;
    struct infiniband_port list[INFINIBAND_PORTS_MAX];
};

struct collector {
    struct devices *devices;
    struct sample_table table;
};

static void infiniband_free_ports(void *layout)
{
    struct infiniband_ports *ports = layout;
    if (ports == NULL)
        return;
    for (size_t i = 0; i < ports->count; i++)
        free(ports->list[i].row);
    free(ports);
}

static bool infiniband_has_file(const struct device *device, const char *path)
{
    char full[PATH_MAX];
    int length = snprintf(full, sizeof full, "%s/%s", device->path, path);
    return length > 0 && (size_t)length < sizeof full && access(full, F_OK) == 0;
}

static bool infiniband_add_file(struct device *device, const char *port, const char *file, size_t *out_file)
{
    char path[NAME_MAX + INFINIBAND_FILE_MAX_BYTES];
    (void)snprintf(path, sizeof path, "ports/%s/%s", port, file);
    return infiniband_has_file(device, path) && devices_add_file(device, path, out_file);
}

/* Names the files of one port; false when it has no counter. */
static bool infiniband_describe_port(struct device *device, const char *port, struct infiniband_port *out_port)
{
    *out_port = (struct infiniband_port){0};
    bool has_counter = false;
    for (size_t i = 0; i < INFINIBAND_COLUMNS; i++) {
        for (size_t j = 0; j < INFINIBAND_FILES_PER_COUNTER && !out_port->has_file[i]; j++) {
            const char *file = infiniband_counters[i].files[j];
            out_port->has_file[i] = file != NULL && infiniband_add_file(device, port, file, &out_port->files[i]);
        }
        has_counter = has_counter || out_port->has_file[i];
    }
    if (!has_counter || !infiniband_add_file(device, port, "state", &out_port->state_file) ||
        !infiniband_add_file(device, port, "rate", &out_port->rate_file))
        return false;
    if (asprintf(&out_port->row, "%s/%s", device->name, port) < 0) {
        out_port->row = NULL; /* asprintf() leaves it undefined */
        return false;
    }
    return true;
}

static int infiniband_compare(const void *a, const void *b)
{
    const struct infiniband_port *first = a;
    const struct infiniband_port *second = b;
    return strverscmp(first->row, second->row);
}

static bool infiniband_describe(struct device *device)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/ports", device->path); /* cut, it isn't there */
    CLEANUP(dir_cleanup) DIR *directory = opendir(path);
    struct infiniband_ports *ports = calloc(1, sizeof *ports);
    device->layout = ports; /* the device's from here, also when it is refused */
    if (directory == NULL || ports == NULL)
        return false;
    const struct dirent *entry;
    while (ports->count < INFINIBAND_PORTS_MAX && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.' && infiniband_describe_port(device, entry->d_name, &ports->list[ports->count]))
            ports->count++;
    }
    qsort(ports->list, ports->count, sizeof ports->list[0], infiniband_compare);
    return ports->count > 0;
}

static const struct devices_class infiniband_class = {
    .path = "class/infiniband",
    .describe = infiniband_describe,
    .free_layout = infiniband_free_ports,
};

static void infiniband_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    devices_free(collector->devices);
    sample_table_fini(&collector->table);
    free(collector);
}

DEFINE_CLEANUP(collector, infiniband_close);

static int infiniband_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    struct sample_column columns[INFINIBAND_COLUMNS];
    for (size_t i = 0; i < INFINIBAND_COLUMNS; i++)
        columns[i] = infiniband_counters[i].column;
    int rc = sample_table_init(&collector->table, columns, INFINIBAND_COLUMNS, 0, err);
    if (rc == 0)
        rc = devices_open(&infiniband_class, config->sys_path, &collector->devices, err);
    if (rc < 0)
        return rc;
    *out_collector = TAKE(collector);
    return 0;
}

/* "ACTIVE, 100 Gb/sec (4X EDR)", from "4: ACTIVE" and the rate. */
static void infiniband_label(struct sample_row *row, const struct device *device, const struct infiniband_port *port)
{
    char label[2 * DEVICES_TEXT_MAX_BYTES + sizeof ", "];
    struct cursor state;
    struct cursor rate;
    uint64_t number;
    if (!devices_text(device, port->state_file, &state) || !devices_text(device, port->rate_file, &rate))
        return;
    if (cursor_u64(&state, &number) && cursor_accept(&state, ':'))
        cursor_skip_blanks(&state);
    int length = snprintf(label, sizeof label, "%.*s, %.*s", (int)cursor_left(&state), state.at,
                          (int)cursor_left(&rate), rate.at);
    sample_row_set_label(row, label, (size_t)length);
}

static void infiniband_read_port(struct collector *collector, const struct device *device,
                                 const struct infiniband_port *port)
{
    struct sample_row *row = NULL;
    for (size_t i = 0; i < INFINIBAND_COLUMNS; i++) {
        int64_t number;
        if (!port->has_file[i] || !devices_number(device, port->files[i], &number) || number < 0)
            continue;
        if (row == NULL)
            row = sample_table_row(&collector->table, port->row, strlen(port->row));
        if (row == NULL)
            return;
        uint64_t raw;
        if (!__builtin_mul_overflow((uint64_t)number, infiniband_counters[i].factor, &raw))
            sample_row_count(row, i, raw);
    }
    if (row != NULL)
        infiniband_label(row, device, port);
}

static int infiniband_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    int rc = devices_tick(collector->devices, now_boot_ns, err);
    if (rc < 0)
        return rc;
    sample_table_begin(&collector->table);
    for (size_t i = 0; i < devices_count(collector->devices); i++) {
        const struct device *device = devices_at(collector->devices, i);
        const struct infiniband_ports *ports = device->layout;
        for (size_t j = 0; j < ports->count; j++)
            infiniband_read_port(collector, device, &ports->list[j]);
    }
    sample_table_end(&collector->table);
    return 0;
}

static const struct sample_table *infiniband_table(const struct collector *collector)
{
    return &collector->table;
}

static void infiniband_take_notes(struct collector *collector, struct buf *out)
{
    devices_take_notes(collector->devices, out);
}

const struct collector_ops infiniband_collector = {
    .name = "infiniband",
    .help = "traffic and errors of InfiniBand, RoCE and Omni-Path ports",
    .open = infiniband_open,
    .read = infiniband_read,
    .table = infiniband_table,
    .take_notes = infiniband_take_notes,
    .close = infiniband_close,
};
