/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/sizes.h"

#include "exporters/mpi/library.h"

static MPI_Count sizes_count_at(struct sizes_counts counts, int index)
{
    return counts.narrow != NULL ? counts.narrow[index] : counts.wide[index];
}

static uint64_t sizes_bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count bytes = 0;
    if (count <= 0 || library.type_size_x(type, &bytes) != MPI_SUCCESS || bytes <= 0)
        return 0;
    return (uint64_t)count * (uint64_t)bytes;
}

/* Counts [0, ranks) of one type, but that of `skipped`; -1 skips none. */
static uint64_t sizes_sum(struct sizes_counts counts, MPI_Datatype type, int ranks, int skipped)
{
    MPI_Count sum = 0;
    for (int i = 0; i < ranks; i++)
        sum += i != skipped ? sizes_count_at(counts, i) : 0;
    return sizes_bytes(sum, type);
}

/* The same with a type for each. */
static uint64_t sizes_sum_types(struct sizes_counts counts, const MPI_Datatype *types, int ranks, int skipped)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ranks; i++)
        bytes += i != skipped ? sizes_bytes(sizes_count_at(counts, i), types[i]) : 0;
    return bytes;
}

/* Whom a collective talks with: all ranks of an intracommunicator, those of the other side of an intercommunicator. */
struct sizes_group {
    int rank;
    int ranks;
    bool is_inter;
};

static struct sizes_group sizes_group(MPI_Comm comm)
{
    struct sizes_group group = {0};
    int is_inter = 0;
    (void)library.comm_rank(comm, &group.rank);
    (void)library.comm_test_inter(comm, &is_inter);
    group.is_inter = is_inter != 0;
    (void)(group.is_inter ? library.comm_remote_size : library.comm_size)(comm, &group.ranks);
    return group;
}

/* What this rank is in a collective with a root. */
static bool sizes_is_root(const struct sizes_group *group, int root)
{
    return group->is_inter ? root == MPI_ROOT : root == group->rank;
}

static bool sizes_is_bystander(const struct sizes_group *group, int root)
{
    return group->is_inter && root == MPI_PROC_NULL;
}

/* Rank to leave out of an array of counts: our own, in place. */
static int sizes_skipped(const struct sizes_group *group, bool is_in_place)
{
    return is_in_place ? group->rank : -1;
}

uint64_t sizes_of_status(const MPI_Status *status)
{
    MPI_Count bytes = 0;
    if (library.get_elements_x(status, library.byte, &bytes) != MPI_SUCCESS)
        return 0;
    return bytes > 0 ? (uint64_t)bytes : 0; /* MPI_UNDEFINED is negative */
}

uint64_t sizes_of_request(const MPI_Status *status, bool is_receive)
{
    int is_cancelled = 0;
    if (is_receive)
        (void)library.test_cancelled(status, &is_cancelled);
    return is_cancelled ? 0 : sizes_of_status(status);
}

/* Point to point, one-sided */

void sizes_sent(struct sizes *moved, MPI_Count count, MPI_Datatype type, int to)
{
    if (to != MPI_PROC_NULL)
        moved->out += sizes_bytes(count, type);
}

void sizes_got(struct sizes *moved, MPI_Count count, MPI_Datatype type, int from)
{
    if (from != MPI_PROC_NULL)
        moved->in += sizes_bytes(count, type);
}

/* Partitioned communication, chapter 4: `count` is that of one partition. */
void sizes_partitions_sent(struct sizes *moved, int partitions, MPI_Count count, MPI_Datatype type, int to)
{
    sizes_sent(moved, partitions * count, type, to);
}

void sizes_partitions_received(struct sizes *moved, int partitions, MPI_Count count, MPI_Datatype type, int from)
{
    sizes_got(moved, partitions * count, type, from);
}

/* With MPI_NO_OP the arguments of the origin are ignored (12.3.4): the call only reads. */
void sizes_get_accumulate(struct sizes *moved, MPI_Count origin_count, MPI_Datatype origin_type, MPI_Count result_count,
                          MPI_Datatype result_type, int target, MPI_Op op)
{
    if (op != library.no_op)
        sizes_sent(moved, origin_count, origin_type, target);
    sizes_got(moved, result_count, result_type, target);
}

void sizes_fetch_and_op(struct sizes *moved, MPI_Datatype type, int target, MPI_Op op)
{
    sizes_get_accumulate(moved, 1, type, 1, type, target, op);
}

/* Two values go: what to compare with, and what to store. */
void sizes_compare_and_swap(struct sizes *moved, MPI_Datatype type, int target)
{
    sizes_sent(moved, 2, type, target);
    sizes_got(moved, 1, type, target);
}

/* Collectives with a root */

void sizes_bcast(struct sizes *moved, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    if (sizes_is_root(&group, root))
        moved->out += sizes_bytes(count, type);
    else if (!sizes_is_bystander(&group, root))
        moved->in += sizes_bytes(count, type);
}

/* Sending to the root: all ranks but the root of an intercommunicator and a root in place. */
static void sizes_to_root(struct sizes *moved, const void *buffer, MPI_Count count, MPI_Datatype type, int root,
                          const struct sizes_group *group)
{
    bool is_root = sizes_is_root(group, root);
    bool is_sender = is_root ? !group->is_inter && buffer != MPI_IN_PLACE : !sizes_is_bystander(group, root);
    if (is_sender)
        moved->out += sizes_bytes(count, type);
}

/* Receiving from the root, with the same exceptions. */
static void sizes_from_root(struct sizes *moved, const void *buffer, MPI_Count count, MPI_Datatype type, int root,
                            const struct sizes_group *group)
{
    struct sizes mirrored = {0};
    sizes_to_root(&mirrored, buffer, count, type, root, group);
    moved->in += mirrored.out;
}

/* Blocks of equal size for each rank, at the root. */
static uint64_t sizes_blocks(MPI_Count count, MPI_Datatype type, const struct sizes_group *group, bool is_in_place)
{
    return sizes_bytes(count, type) * (uint64_t)(group->ranks - (is_in_place ? 1 : 0));
}

void sizes_gather(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                  MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    sizes_to_root(moved, send_buffer, send_count, send_type, root, &group);
    if (sizes_is_root(&group, root))
        moved->in += sizes_blocks(recv_count, recv_type, &group, send_buffer == MPI_IN_PLACE);
}

void sizes_gatherv(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                   struct sizes_counts recv_counts, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    sizes_to_root(moved, send_buffer, send_count, send_type, root, &group);
    if (sizes_is_root(&group, root))
        moved->in += sizes_sum(recv_counts, recv_type, group.ranks, sizes_skipped(&group, send_buffer == MPI_IN_PLACE));
}

void sizes_scatter(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, const void *recv_buffer,
                   MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    sizes_from_root(moved, recv_buffer, recv_count, recv_type, root, &group);
    if (sizes_is_root(&group, root))
        moved->out += sizes_blocks(send_count, send_type, &group, recv_buffer == MPI_IN_PLACE);
}

void sizes_scatterv(struct sizes *moved, struct sizes_counts send_counts, MPI_Datatype send_type,
                    const void *recv_buffer, MPI_Count recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    sizes_from_root(moved, recv_buffer, recv_count, recv_type, root, &group);
    if (sizes_is_root(&group, root))
        moved->out +=
            sizes_sum(send_counts, send_type, group.ranks, sizes_skipped(&group, recv_buffer == MPI_IN_PLACE));
}

void sizes_reduce(struct sizes *moved, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_root = sizes_is_root(&group, root);
    if (is_root)
        moved->in += sizes_bytes(count, type);
    if (is_root ? !group.is_inter : !sizes_is_bystander(&group, root))
        moved->out += sizes_bytes(count, type);
}

/* Collectives of all with all */

void sizes_allreduce(struct sizes *moved, MPI_Count count, MPI_Datatype type)
{
    uint64_t bytes = sizes_bytes(count, type);
    moved->in += bytes;
    moved->out += bytes;
}

/* What rank 0 receives is undefined (6.11.2). */
void sizes_exscan(struct sizes *moved, MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    uint64_t bytes = sizes_bytes(count, type);
    moved->in += group.rank > 0 ? bytes : 0;
    moved->out += bytes;
}

/* The counts are those of our own side, of an intercommunicator too (6.10.2). */
void sizes_reduce_scatter(struct sizes *moved, struct sizes_counts counts, MPI_Datatype type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    int own_ranks = group.ranks;
    if (group.is_inter)
        (void)library.comm_size(comm, &own_ranks);
    moved->in += sizes_bytes(sizes_count_at(counts, group.rank), type);
    moved->out += sizes_sum(counts, type, own_ranks, -1);
}

void sizes_reduce_scatter_block(struct sizes *moved, MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    int own_ranks = 0;
    (void)library.comm_size(comm, &own_ranks);
    moved->in += sizes_bytes(count, type);
    moved->out += sizes_bytes(count, type) * (uint64_t)own_ranks;
}

/* In place, what a rank sends to the others is its block of the receive buffer. */
void sizes_allgather(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                     MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_in_place = send_buffer == MPI_IN_PLACE;
    moved->out += is_in_place ? sizes_bytes(recv_count, recv_type) : sizes_bytes(send_count, send_type);
    moved->in += sizes_blocks(recv_count, recv_type, &group, is_in_place);
}

void sizes_allgatherv(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                      struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_in_place = send_buffer == MPI_IN_PLACE;
    moved->out += is_in_place ? sizes_bytes(sizes_count_at(recv_counts, group.rank), recv_type)
                              : sizes_bytes(send_count, send_type);
    moved->in += sizes_sum(recv_counts, recv_type, group.ranks, sizes_skipped(&group, is_in_place));
}

/* In place, the receive buffer's blocks are exchanged (6.8). */
void sizes_alltoall(struct sizes *moved, const void *send_buffer, MPI_Count send_count, MPI_Datatype send_type,
                    MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_in_place = send_buffer == MPI_IN_PLACE;
    moved->in += sizes_blocks(recv_count, recv_type, &group, is_in_place);
    moved->out += is_in_place ? sizes_blocks(recv_count, recv_type, &group, true)
                              : sizes_blocks(send_count, send_type, &group, false);
}

void sizes_alltoallv(struct sizes *moved, const void *send_buffer, struct sizes_counts send_counts,
                     MPI_Datatype send_type, struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_in_place = send_buffer == MPI_IN_PLACE;
    uint64_t in = sizes_sum(recv_counts, recv_type, group.ranks, sizes_skipped(&group, is_in_place));
    moved->in += in;
    moved->out += is_in_place ? in : sizes_sum(send_counts, send_type, group.ranks, -1);
}

void sizes_alltoallw(struct sizes *moved, const void *send_buffer, struct sizes_counts send_counts,
                     const MPI_Datatype *send_types, struct sizes_counts recv_counts, const MPI_Datatype *recv_types,
                     MPI_Comm comm)
{
    struct sizes_group group = sizes_group(comm);
    bool is_in_place = send_buffer == MPI_IN_PLACE;
    uint64_t in = sizes_sum_types(recv_counts, recv_types, group.ranks, sizes_skipped(&group, is_in_place));
    moved->in += in;
    moved->out += is_in_place ? in : sizes_sum_types(send_counts, send_types, group.ranks, -1);
}

/* Neighborhoods, chapter 8.6. Buffers have a place for each neighbour, MPI_PROC_NULL at a border included. */

/* Places for neighbours in the buffers. Only a Cartesian topology may have nobody at one of them. */
struct sizes_neighbors {
    MPI_Comm comm;
    int sources;
    int destinations;
    bool is_cartesian;
};

static struct sizes_neighbors sizes_neighbors(MPI_Comm comm)
{
    struct sizes_neighbors neighbors = {.comm = comm};
    struct sizes_group group = sizes_group(comm);
    int topology = MPI_UNDEFINED;
    int dimensions = 0;
    int is_weighted = 0;
    (void)library.topo_test(comm, &topology);
    if (topology == MPI_DIST_GRAPH) {
        (void)library.dist_graph_neighbors_count(comm, &neighbors.sources, &neighbors.destinations, &is_weighted);
    } else if (topology == MPI_GRAPH) {
        (void)library.graph_neighbors_count(comm, group.rank, &neighbors.sources);
        neighbors.destinations = neighbors.sources;
    } else if (topology == MPI_CART) {
        neighbors.is_cartesian = true;
        (void)library.cartdim_get(comm, &dimensions);
        neighbors.sources = neighbors.destinations = 2 * dimensions;
    }
    return neighbors;
}

/* Is there anybody at place `index` of the buffers? In dimension d, place 2 d is the one before, 2 d + 1 after. */
static bool sizes_is_neighbor(const struct sizes_neighbors *neighbors, int index)
{
    int before = MPI_PROC_NULL;
    int after = MPI_PROC_NULL;
    if (!neighbors->is_cartesian)
        return true;
    (void)library.cart_shift(neighbors->comm, index / 2, 1, &before, &after);
    return (index % 2 == 0 ? before : after) != MPI_PROC_NULL;
}

static int sizes_real_neighbors(const struct sizes_neighbors *neighbors, int places)
{
    int real = 0;
    for (int i = 0; i < places; i++)
        real += sizes_is_neighbor(neighbors, i) ? 1 : 0;
    return real;
}

static uint64_t sizes_sum_neighbors(const struct sizes_neighbors *neighbors, struct sizes_counts counts,
                                    MPI_Datatype type, int places)
{
    MPI_Count sum = 0;
    for (int i = 0; i < places; i++)
        sum += sizes_is_neighbor(neighbors, i) ? sizes_count_at(counts, i) : 0;
    return sizes_bytes(sum, type);
}

static uint64_t sizes_sum_neighbors_types(const struct sizes_neighbors *neighbors, struct sizes_counts counts,
                                          const MPI_Datatype *types, int places)
{
    uint64_t bytes = 0;
    for (int i = 0; i < places; i++)
        bytes += sizes_is_neighbor(neighbors, i) ? sizes_bytes(sizes_count_at(counts, i), types[i]) : 0;
    return bytes;
}

/* One buffer for all neighbours: a rank contributes it once. */
static uint64_t sizes_to_neighbors(const struct sizes_neighbors *neighbors, MPI_Count count, MPI_Datatype type)
{
    return sizes_real_neighbors(neighbors, neighbors->destinations) > 0 ? sizes_bytes(count, type) : 0;
}

void sizes_neighbor_allgather(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, MPI_Count recv_count,
                              MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_neighbors neighbors = sizes_neighbors(comm);
    uint64_t sources = (uint64_t)sizes_real_neighbors(&neighbors, neighbors.sources);
    moved->out += sizes_to_neighbors(&neighbors, send_count, send_type);
    moved->in += sizes_bytes(recv_count, recv_type) * sources;
}

void sizes_neighbor_allgatherv(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type,
                               struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_neighbors neighbors = sizes_neighbors(comm);
    moved->out += sizes_to_neighbors(&neighbors, send_count, send_type);
    moved->in += sizes_sum_neighbors(&neighbors, recv_counts, recv_type, neighbors.sources);
}

void sizes_neighbor_alltoall(struct sizes *moved, MPI_Count send_count, MPI_Datatype send_type, MPI_Count recv_count,
                             MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_neighbors neighbors = sizes_neighbors(comm);
    uint64_t sources = (uint64_t)sizes_real_neighbors(&neighbors, neighbors.sources);
    uint64_t destinations = (uint64_t)sizes_real_neighbors(&neighbors, neighbors.destinations);
    moved->out += sizes_bytes(send_count, send_type) * destinations;
    moved->in += sizes_bytes(recv_count, recv_type) * sources;
}

void sizes_neighbor_alltoallv(struct sizes *moved, struct sizes_counts send_counts, MPI_Datatype send_type,
                              struct sizes_counts recv_counts, MPI_Datatype recv_type, MPI_Comm comm)
{
    struct sizes_neighbors neighbors = sizes_neighbors(comm);
    moved->out += sizes_sum_neighbors(&neighbors, send_counts, send_type, neighbors.destinations);
    moved->in += sizes_sum_neighbors(&neighbors, recv_counts, recv_type, neighbors.sources);
}

void sizes_neighbor_alltoallw(struct sizes *moved, struct sizes_counts send_counts, const MPI_Datatype *send_types,
                              struct sizes_counts recv_counts, const MPI_Datatype *recv_types, MPI_Comm comm)
{
    struct sizes_neighbors neighbors = sizes_neighbors(comm);
    moved->out += sizes_sum_neighbors_types(&neighbors, send_counts, send_types, neighbors.destinations);
    moved->in += sizes_sum_neighbors_types(&neighbors, recv_counts, recv_types, neighbors.sources);
}
