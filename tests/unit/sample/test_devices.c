/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "drive.h"
#include "sample/probe.h"
#include "support/scratch.h"

static const int64_t second_ns = CLOCK_NS_PER_SECOND;

/* A device is its file "value" and, when it has one, its file "name"; its layout is the text of "name". */
static bool describe(struct device *device)
{
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, 64);
    size_t file;
    if (!devices_read_text(device, "name", &name))
        return false;
    device->layout = strdup(buf_string(&name));
    return devices_add_file(device, "value", &file) && devices_add_file(device, "other", &file);
}

static const struct devices_class class = {.path = "class/thing", .describe = describe, .free_layout = free};

static struct devices *open_things(const struct scratch *scratch)
{
    struct devices *devices = NULL;
    struct error err = {0};
    if (devices_open(&class, scratch->path, &devices, &err) < 0)
        fail_msg("%s", err.text);
    return devices;
}

/* The latest value of the device of that name; -1 when it has none. */
static int64_t value_of(const struct devices *devices, const char *name)
{
    int64_t number = -1;
    for (size_t i = 0; i < devices_count(devices); i++) {
        if (strcmp(devices_at(devices, i)->name, name) == 0 && !devices_number(devices_at(devices, i), 0, &number))
            number = -1;
    }
    return number;
}

static void tick_until(struct devices *devices, int64_t now_boot_ns, const char *name, int64_t value)
{
    int64_t until_ns = clock_mono_ns() + DRIVE_DEADLINE_MS * CLOCK_NS_PER_MS;
    do {
        if (clock_mono_ns() > until_ns)
            fail_msg("'%s' is %lld, expected %lld", name, (long long)value_of(devices, name), (long long)value);
        assert_int_equal(devices_tick(devices, now_boot_ns, NULL), 0);
        (void)poll(NULL, 0, 1);
    } while (value_of(devices, name) != value);
}

static void devices_are_read_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    drive_write(&scratch, "class/thing/t10/name", "ten\n\n");
    drive_write(&scratch, "class/thing/t10/value", "10\n");
    drive_write(&scratch, "class/thing/t9/name", "nine");
    drive_write(&scratch, "class/thing/t9/value", "-9");
    drive_write(&scratch, "class/thing/nameless/value", "1\n");

    CLEANUP(devices_cleanup) struct devices *devices = open_things(&scratch);
    assert_int_equal(devices_count(devices), 2);
    assert_string_equal(devices_at(devices, 0)->name, "t9");
    assert_string_equal(devices_at(devices, 1)->layout, "ten");
    assert_int_equal(value_of(devices, "t9"), -1); /* nobody has been asked */
    tick_until(devices, clock_boot_ns(), "t9", -9);
    tick_until(devices, clock_boot_ns(), "t10", 10);

    struct cursor text;
    assert_false(devices_text(devices_at(devices, 0), 1, &text)); /* there is no file "other" */
    drive_write(&scratch, "class/thing/t9/other", "12 of 13\n");
    do
        tick_until(devices, clock_boot_ns(), "t9", -9);
    while (!devices_text(devices_at(devices, 0), 1, &text));
    assert_true(cursor_equals(&text, "12 of 13"));
    int64_t number = 7;
    assert_false(devices_number(devices_at(devices, 0), 1, &number));
    assert_int_equal(number, 7);
}

static void machine_without_such_devices_says_so(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct devices *devices = NULL;
    struct error err = {0};
    assert_int_equal(devices_open(&class, scratch.path, &devices, &err), -ENODEV);
    assert_non_null(strstr(err.text, "no "));
    drive_write(&scratch, "class/thing/t1/value", "1\n");
    assert_int_equal(devices_open(&class, scratch.path, &devices, &err), -ENODEV);
    assert_non_null(strstr(err.text, "nothing to read in "));
    assert_null(devices);
}

static void devices_come_and_go(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    drive_write(&scratch, "class/thing/t1/name", "one");
    drive_write(&scratch, "class/thing/t1/value", "1");
    drive_write(&scratch, "class/thing/t2/name", "two");
    drive_write(&scratch, "class/thing/t2/value", "2");
    CLEANUP(devices_cleanup) struct devices *devices = open_things(&scratch);
    int64_t now_ns = clock_boot_ns();
    tick_until(devices, now_ns, "t2", 2);

    drive_write(&scratch, "class/thing/t3/name", "three");
    drive_write(&scratch, "class/thing/t3/value", "3");
    assert_int_equal(unlink(scratch_path(&scratch, "class/thing/t1/name", path)), 0);
    assert_int_equal(unlink(scratch_path(&scratch, "class/thing/t1/value", path)), 0);
    assert_int_equal(rmdir(scratch_path(&scratch, "class/thing/t1", path)), 0);
    tick_until(devices, now_ns + DEVICES_RESCAN_NS - second_ns, "t1", -1);
    assert_int_equal(devices_count(devices), 2); /* not looked for yet */
    tick_until(devices, now_ns + DEVICES_RESCAN_NS, "t3", 3);
    assert_int_equal(devices_count(devices), 2);
    assert_string_equal(devices_at(devices, 0)->name, "t2");
}

static void another_device_of_the_same_name_is_described_anew(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    drive_write(&scratch, "class/thing/t1/name", "one");
    drive_write(&scratch, "class/thing/t1/value", "1");
    CLEANUP(devices_cleanup) struct devices *devices = open_things(&scratch);
    int64_t now_ns = clock_boot_ns();
    tick_until(devices, now_ns, "t1", 1);
    assert_int_equal(unlink(scratch_path(&scratch, "class/thing/t1/value", path)), 0);
    tick_until(devices, now_ns, "t1", -1);

    drive_write(&scratch, "class/thing/t1/name", "other");
    tick_until(devices, now_ns + DEVICES_RESCAN_NS, "t1", -1); /* found mute, and removed */
    drive_write(&scratch, "class/thing/t1/value", "11");
    tick_until(devices, now_ns + 2 * DEVICES_RESCAN_NS, "t1", 11);
    assert_string_equal(devices_at(devices, 0)->layout, "other");
}

/* Opening a FIFO that nobody writes to never returns: what a device that doesn't answer does. */
static void device_that_hangs_is_said_once_and_the_others_go_on(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char fifo[PATH_MAX];
    char notes[2 * PATH_MAX];
    drive_write(&scratch, "class/thing/t1/name", "one");
    drive_write(&scratch, "class/thing/t1/value", "1");
    drive_write(&scratch, "class/thing/t2/name", "two");
    assert_int_equal(mkfifo(scratch_path(&scratch, "class/thing/t2/value", fifo), 0600), 0);
    CLEANUP(devices_cleanup) struct devices *devices = open_things(&scratch);
    tick_until(devices, clock_boot_ns(), "t2", -1);
    for (int value = 100; value < 110; value++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", value);
        drive_write(&scratch, "class/thing/t1/value", text);
        tick_until(devices, clock_boot_ns() + 2 * PROBE_STUCK_AFTER_NS, "t1", value);
    }
    CLEANUP(buf_cleanup) struct buf said;
    buf_init(&said, 4096);
    devices_take_notes(devices, &said);
    (void)snprintf(notes, sizeof notes, "%s/class/thing/t2 doesn't answer: left out until it does\n", scratch.path);
    assert_string_equal(buf_string(&said), notes);

    int fd = open(fifo, O_WRONLY | O_CLOEXEC); /* now the device answers */
    assert_true(fd >= 0);
    assert_int_equal(unlink(fifo), 0);
    drive_write(&scratch, "class/thing/t2/value", "2");
    assert_int_equal(write(fd, "7\n", 2), 2);
    assert_int_equal(close(fd), 0);
    tick_until(devices, clock_boot_ns(), "t2", 2);
    buf_reset(&said);
    devices_take_notes(devices, &said);
    (void)snprintf(notes, sizeof notes, "%s/class/thing/t2 answers again\n", scratch.path);
    assert_string_equal(buf_string(&said), notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_read_in_the_order_of_their_numbers),
        cmocka_unit_test(machine_without_such_devices_says_so),
        cmocka_unit_test(devices_come_and_go),
        cmocka_unit_test(another_device_of_the_same_name_is_described_anew),
        cmocka_unit_test(device_that_hangs_is_said_once_and_the_others_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
