/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/mounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "util/buf.h"

/* The points chosen from `text`, with a comma between them, in `out`. */
static void choose(const char *text, struct buf *out)
{
    struct mounts mounts;
    assert_int_equal(mounts_parse(text, strlen(text), &mounts, NULL), 0);
    buf_init(out, 1 << 20);
    for (size_t i = 0; i < mounts.count; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", mounts.list[i].point);
    mounts_fini(&mounts);
}

struct choice {
    const char *name;
    const char *text;
    const char *points;
};

static const struct choice choices[] = {
    {"nothing", "", ""},
    {"disks, memory and servers",
     "/dev/sda1 / ext4 rw 0 0\n"
     "tank/home /home zfs rw 0 0\n"
     "10.0.0.1@o2ib:/scratch /scratch lustre rw 0 0\n"
     "nfs:/export /mnt/nfs nfs4 rw 0 0\n"
     "alice@host:/ /mnt/ssh fuse.sshfs rw 0 0\n"
     "tmpfs /tmp tmpfs rw 0 0\n"
     "newfs /fast some_file_system_of_2040 rw 0 0\n",
     "/,/home,/scratch,/mnt/nfs,/mnt/ssh,/tmp,/fast"},
    {"what holds nobody's files",
     "proc /mnt/proc proc rw 0 0\n"
     "cgroup2 /cg cgroup2 rw 0 0\n"
     "systemd-1 /net autofs rw 0 0\n"
     "/dev/loop3 /snap/core/1 squashfs ro 0 0\n"
     "portal /run/user/1000/doc fuse.portal rw 0 0\n",
     ""},
    {"below /dev, /proc and /sys",
     "devtmpfs /dev tmpfs rw 0 0\n"
     "tmpfs /dev/shm tmpfs rw 0 0\n"
     "tmpfs /devices tmpfs rw 0 0\n"
     "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
     "tmpfs /proc/acpi tmpfs rw 0 0\n",
     "/dev/shm,/devices"},
    {"containers",
     "overlay / overlay rw 0 0\n"
     "overlay /var/lib/docker/overlay2/abc/merged overlay rw 0 0\n"
     "overlay /srv/rootfs overlay rw 0 0\n"
     "shm /var/lib/docker/containers/abc/mounts/shm tmpfs rw 0 0\n"
     "tmpfs /var/lib/kubelet/pods/1/volumes/x tmpfs rw 0 0\n",
     "/"},
    {"newest of one point wins, at its own place",
     "/dev/sda1 /data ext4 rw 0 0\n"
     "/dev/sdb1 /other ext4 rw 0 0\n"
     "/dev/sdc1 /data xfs rw 0 0\n",
     "/other,/data"},
    {"what is hidden by something unwanted is hidden all the same",
     "/dev/sda1 /data ext4 rw 0 0\n"
     "proc /data proc rw 0 0\n",
     ""},
    {"automounted directory", "auto.home /home autofs rw 0 0\nnfs:/home /home nfs rw 0 0\n", "/home"},
    {"same device at many points, the shortest wins",
     "/dev/sda1 /mnt/bind ext4 rw 0 0\n"
     "/dev/sda1 / ext4 rw 0 0\n"
     "/dev/sda1 /b ext4 rw 0 0\n"
     "nfs:/x /n1 nfs rw 0 0\n"
     "nfs:/x /n2 nfs rw 0 0\n",
     "/,/n1"},
    {"a point that is hidden doesn't hide the other points of its device",
     "/dev/sda1 /a ext4 rw 0 0\n"
     "/dev/sda1 /a/longer ext4 rw 0 0\n"
     "/dev/sdb1 /a ext4 rw 0 0\n",
     "/a/longer,/a"},
    {"devices that are only words",
     "tmpfs /run tmpfs rw 0 0\n"
     "tmpfs /tmp tmpfs rw 0 0\n"
     "none /m1 9p rw 0 0\n"
     "none /m2 9p rw 0 0\n"
     "prog /f1 fuse rw 0 0\n"
     "prog /f2 fuse rw 0 0\n",
     "/run,/tmp,/m1,/m2,/f1,/f2"},
    {"escapes, and what only looks like one",
     "/dev/sda1 /a\\040b\\011c\\012d\\134e\\043 ext4 rw 0 0\n"
     "/dev/sdb1 /\\477\\4\\08\\000 ext4 rw 0 0\n"
     "/dev/sdc1 /end\\04 ext4",
     "/a b\tc\nd\\e#,/\\477\\4\\08\\000,/end\\04"},
    {"device without a name", " /x tmpfs rw 0 0\n", "/x"},
    {"lines that make no sense", "\n/dev/sda1\n/dev/sda2 relative ext4 rw\n   \n/dev/sda3 /ok ext4\n", "/ok"},
    {"bytes that are not UTF-8", "/dev/sda1 /\xff\x01\"x ext4 rw 0 0\n", "/\xff\x01\"x"},
};

static void mounts_that_hold_files_are_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(choices); i++) {
        CLEANUP(buf_cleanup) struct buf points;
        choose(choices[i].text, &points);
        if (strcmp(buf_string(&points), choices[i].points) != 0)
            fail_msg("%s: chose '%s', expected '%s'", choices[i].name, buf_string(&points), choices[i].points);
    }
}

static void device_and_type_are_told(void **state)
{
    (void)state;
    static const char text[] = "my\\040server:/x /mnt nfs4 rw 0 0\n";
    struct mounts mounts;
    assert_int_equal(mounts_parse(text, sizeof text - 1, &mounts, NULL), 0);
    assert_int_equal(mounts.count, 1);
    assert_string_equal(mounts.list[0].device, "my server:/x");
    assert_string_equal(mounts.list[0].type, "nfs4");
    mounts_fini(&mounts);
    mounts_fini(&mounts); /* a second time is nothing */
}

static void text_may_hold_any_bytes(void **state)
{
    (void)state;
    static const char text[] = "/dev/sda1 /a\0b ext4 rw\n/dev/sdb1 /c ext4 rw\n\0\0\0\0";
    struct mounts mounts;
    assert_int_equal(mounts_parse(text, sizeof text, &mounts, NULL), 0);
    assert_int_equal(mounts.count, 1);
    assert_string_equal(mounts.list[0].point, "/c");
    mounts_fini(&mounts);
}

static void mounts_past_the_limit_are_counted(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < MOUNTS_MAX + 7; i++)
        buf_printf(&text, "/dev/d%d /m%d ext4 rw 0 0\n", i, i);
    struct mounts mounts;
    assert_int_equal(mounts_parse(text.data, text.length, &mounts, NULL), 0);
    assert_int_equal(mounts.count, MOUNTS_MAX);
    assert_int_equal(mounts.refused, 7);
    assert_string_equal(mounts.list[MOUNTS_MAX - 1].device, "/dev/d1023");
    mounts_fini(&mounts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_that_hold_files_are_chosen),
        cmocka_unit_test(device_and_type_are_told),
        cmocka_unit_test(text_may_hold_any_bytes),
        cmocka_unit_test(mounts_past_the_limit_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
