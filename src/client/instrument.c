/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instrument: counts the calls of functions that were compiled with -finstrument-functions, as func__<symbol>_<object>.
 *
 * The compiler calls __cyg_profile_func_enter() with the function's address. A table of open addressing leads from
 * there to the counter; it is made once and never moves, so finding takes no lock. Whoever meets a function first
 * claims its slot, finds its name and declares the counter; others wait for that, so no call is lost, but for those
 * that a signal handler makes in the very thread that is at it. Functions past the table's room count together.
 */
#include <errno.h>
#include <sched.h>

#include "metric_proxy_client.h"

#include "client/cell.h"
#include "client/process.h"
#include "client/symbol.h"
#include "client/sys.h"

#define INSTRUMENT_API __attribute__((visibility("default"), no_instrument_function))

enum {
    INSTRUMENT_SLOTS = 1 << 16,
    INSTRUMENT_PROBES_MAX = 128,
    INSTRUMENT_WAITS_MAX = 100000, /* for a thread that was claiming when a fork left it behind */
};

struct instrument_slot {
    uintptr_t function; /* 0: free */
    MetricProxyValue *counter;
};

/* One a process, as the functions are. */
static struct instrument_slot *instrument_slots; /* [INSTRUMENT_SLOTS]; NULL until the first call */
static MetricProxyValue instrument_refused;      /* stands for a counter that could not be made */
static __thread bool instrument_is_busy __attribute__((tls_model("initial-exec")));

void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);

static MetricProxyValue *instrument_declare(const char *name, size_t name_bytes)
{
    static const char doc[] = "calls of the function";
    const struct segment_metric_spec spec = {
        .name = name,
        .name_bytes = name_bytes,
        .doc = doc,
        .doc_bytes = sizeof doc - 1,
        .kind = SEGMENT_COUNTER_U64,
        .cells_count = 1,
        .scale = 1,
    };
    MetricProxyValue *counter = process_start() ? process_declare(&spec) : NULL;
    return counter != NULL ? counter : &instrument_refused;
}

static MetricProxyValue *instrument_declare_function(const void *function)
{
    char bytes[SEGMENT_NAME_MAX_BYTES];
    struct text name = text_in(bytes, sizeof bytes);
    text_add(&name, "func__");
    symbol_name(function, &name);
    return instrument_declare(bytes, name.length);
}

static struct instrument_slot *instrument_table(void)
{
    struct instrument_slot *slots = __atomic_load_n(&instrument_slots, __ATOMIC_ACQUIRE);
    if (slots != NULL)
        return slots;
    size_t bytes = INSTRUMENT_SLOTS * sizeof *slots;
    struct instrument_slot *made = sys_memory(bytes);
    if (made == NULL)
        return NULL;
    /* Acquire on failure: another thread's table is used, whose slots must be seen. */
    if (__atomic_compare_exchange_n(&instrument_slots, &slots, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    (void)munmap(made, bytes); /* of our own mapping: can't fail */
    return slots;
}

/* The slot of `function`, perhaps claimed just now by this thread; NULL: there is no room. */
static struct instrument_slot *instrument_find(struct instrument_slot *slots, uintptr_t function, bool *out_is_mine)
{
    uint64_t hash = (uint64_t)function * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing: Knuth, 6.4 */
    *out_is_mine = false;
    for (unsigned i = 0; i < INSTRUMENT_PROBES_MAX; i++) {
        struct instrument_slot *slot = &slots[((hash >> 48) + i) % INSTRUMENT_SLOTS];
        uintptr_t found = __atomic_load_n(&slot->function, __ATOMIC_RELAXED);
        if (found == 0 &&
            __atomic_compare_exchange_n(&slot->function, &found, function, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            *out_is_mine = true;
            return slot;
        }
        if (found == function)
            return slot;
    }
    return NULL;
}

/* Waits for another thread that makes the counter; NULL when it never comes. */
static MetricProxyValue *instrument_await(struct instrument_slot *slot)
{
    MetricProxyValue *counter = NULL;
    for (unsigned i = 0; counter == NULL && i < INSTRUMENT_WAITS_MAX && !instrument_is_busy; i++) {
        (void)sched_yield();
        counter = __atomic_load_n(&slot->counter, __ATOMIC_ACQUIRE);
    }
    return counter;
}

/* The counter of a function that this thread meets for the first time. */
static MetricProxyValue *instrument_learn(struct instrument_slot *slots, uintptr_t function)
{
    static MetricProxyValue *others;
    bool is_mine = false;
    struct instrument_slot *slot = slots != NULL ? instrument_find(slots, function, &is_mine) : NULL;
    if (slot != NULL && !is_mine)
        return instrument_await(slot);
    if (instrument_is_busy)
        return NULL;
    instrument_is_busy = true;
    MetricProxyValue *counter;
    if (slot == NULL) {
        counter = __atomic_load_n(&others, __ATOMIC_ACQUIRE);
        if (counter == NULL)
            counter = instrument_declare("func__others", sizeof "func__others" - 1);
        __atomic_store_n(&others, counter, __ATOMIC_RELEASE); /* a second one of the name is the same counter */
    } else {
        counter = instrument_declare_function((const void *)function);
        __atomic_store_n(&slot->counter, counter, __ATOMIC_RELEASE);
    }
    instrument_is_busy = false;
    return counter;
}

static MetricProxyValue *instrument_known(struct instrument_slot *slots, uintptr_t function)
{
    uint64_t hash = (uint64_t)function * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; slots != NULL && i < INSTRUMENT_PROBES_MAX; i++) {
        struct instrument_slot *slot = &slots[((hash >> 48) + i) % INSTRUMENT_SLOTS];
        uintptr_t found = __atomic_load_n(&slot->function, __ATOMIC_RELAXED);
        if (found == function)
            return __atomic_load_n(&slot->counter, __ATOMIC_ACQUIRE);
        if (found == 0)
            return NULL;
    }
    return NULL;
}

INSTRUMENT_API void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    struct instrument_slot *slots = __atomic_load_n(&instrument_slots, __ATOMIC_ACQUIRE);
    MetricProxyValue *counter = instrument_known(slots, (uintptr_t)function);
    if (counter == NULL) {
        int kept_errno = errno;
        counter = instrument_learn(instrument_table(), (uintptr_t)function);
        errno = kept_errno;
    }
    if (counter == NULL || counter == &instrument_refused)
        return;
    uint64_t *cells = process_cells(counter);
    if (cells != NULL)
        cell_add_whole(cells, 1);
}

INSTRUMENT_API void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)function;
    (void)call_site;
}
