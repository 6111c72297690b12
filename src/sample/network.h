/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network: what network interfaces sent and received, from /proc/net/dev of the network name space in which the
 * collector was opened: a row for each interface but `lo`.
 *
 * Which number is what is read from the file's header, not known by position. A name may hold any byte but '/' and NUL,
 * so blanks, quotes and colons too: it ends at the last colon of its line.
 */
#ifndef SAMPLE_NETWORK_H
#define SAMPLE_NETWORK_H

#include <stddef.h>

#include "sample/collector.h"

enum network_column {
    NETWORK_BYTES_RECV,
    NETWORK_PACKETS_RECV,
    NETWORK_RX_ERRORS,
    NETWORK_RX_DROPPED,
    NETWORK_BYTES_SENT,
    NETWORK_PACKETS_SENT,
    NETWORK_TX_ERRORS,
    NETWORK_TX_DROPPED,
    NETWORK_COLLISIONS,
    NETWORK_MULTICAST_RECV,
    NETWORK_RX_FIFO_ERRORS,
    NETWORK_RX_FRAME_ERRORS,
    NETWORK_TX_FIFO_ERRORS,
    NETWORK_TX_CARRIER_ERRORS,
    NETWORK_COLUMNS,
};

extern const struct collector_ops network_collector;

/* A table with these columns and no rows yet, for sample_table_fini(). -ENOMEM. */
MUST_CHECK int network_table_init(struct sample_table *table, struct error *err);

/* Parses the text of /proc/net/dev: see proctable_parse. It fails when there is no header. */
MUST_CHECK int network_parse(const char *text, size_t length, struct sample_table *table, struct error *err);

#endif
