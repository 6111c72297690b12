# SPDX-License-Identifier: BSD-3-Clause
"""A mount whose server is dead: everything else goes on, and the service can be stopped."""
import os
import signal
import statistics
import subprocess

import pytest

from support.service import BUILD_DIR, is_alive, threads_of
from support.waiting import wait_until

HANGFS = BUILD_DIR / "tests" / "hangfs"
INTERVAL_MS = 100


class HangingMount:
    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self.process = subprocess.Popen([HANGFS, directory], stdout=subprocess.PIPE, text=True)
        self.hear("ready")

    def hear(self, word):
        assert self.process.stdout.readline().strip() == word

    def hang(self):
        self.process.send_signal(signal.SIGUSR1)
        self.hear("hangs")

    def answer(self):
        self.process.send_signal(signal.SIGUSR2)
        while self.process.stdout.readline().strip() != "answers":
            pass

    def close(self):
        self.process.terminate()
        self.process.communicate()


@pytest.fixture
def mount(tmp_path):
    if not HANGFS.exists():
        pytest.skip("needs libfuse3-dev: hangfs was not built")
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse: mounts a file system that hangs")
    made = HangingMount(tmp_path / "dead")
    yield made
    made.close()


def series_of(mount):
    return f"fs-{mount.directory}"


def test_a_mount_that_hangs_costs_the_others_nothing_and_comes_back(service, mount):
    one = service(DFTRACER_TRACE_INTERVAL_MS=INTERVAL_MS, DFTRACER_LIBUV_THREADS=1, DFTRACER_LOG_LEVEL="WARN")
    one.start()
    pid = one.pid()
    one.wait_for(series_of(mount), 5)

    mount.hang()
    mount.hear("held")
    wait_until(lambda: str(mount.directory) in one.errors(), "a word about the mount")
    threads = threads_of(pid)
    ticks = len(one.so_far().named("memory"))
    one.wait_for("memory", ticks + 20)
    hanging = one.so_far().steps_ms("memory")[ticks:ticks + 20]
    assert statistics.median(hanging) < 1.2 * INTERVAL_MS, "the cadence of every other series is as before"
    assert threads_of(pid) == threads, "no further thread is spent on the mount"
    stuck = len(one.so_far().named(series_of(mount)))
    one.wait_for("memory", ticks + 30)
    assert len(one.so_far().named(series_of(mount))) == stuck, "its series has disappeared"

    mount.answer()
    one.wait_for(series_of(mount), stuck + 3)
    one.stop()
    assert max(one.load().steps_ms("memory")[1:]) < 1000, "every other series went on"
    assert one.errors().count(str(mount.directory)) == 2, "it was said once that it hangs, and once that it answers"


def test_a_service_with_a_hanging_mount_stops_in_time_and_can_be_started_again(service, mount):
    one = service(DFTRACER_TRACE_INTERVAL_MS=INTERVAL_MS, DFTRACER_LIBUV_THREADS=1)
    one.start()
    first = one.pid()
    one.wait_for(series_of(mount), 2)
    mount.hang()
    mount.hear("held")
    ticks = len(one.so_far().named("memory"))
    one.wait_for("memory", ticks + 5)
    one.env["DFTRACER_STOP_TIMEOUT_MS"] = "5000"
    one.stop()
    assert one.load().is_ended
    # The kernel keeps what is left of the process until the mount answers; neither lock nor trace is held by that.
    one.start()
    second = one.pid()
    assert second != first and is_alive(second)
    one.wait_for("memory", 3)
    one.stop()
    assert one.load().is_ended
