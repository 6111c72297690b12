# SPDX-License-Identifier: BSD-3-Clause
"""File systems that are full, gone or read-only: said once, sampling goes on, nothing is lost in silence."""
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

from support import tracereader
from support.service import services_of
from support.waiting import rounds, wait_until


def fill(directory):
    """Takes all space that is left."""
    with open(directory / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_is_said_once_and_writing_goes_on_when_there_is_room(service, small_tmpfs):
    disk = small_tmpfs(1 << 20)
    one = service(prefix=disk / "trace", DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_FLUSH_INTERVAL_MS=50)
    one.start()
    one.wait_for("memory", 3)
    fill(disk)
    wait_until(lambda: "No space left on device" in one.errors(), "a word about the full disk")
    ticks = one.must("status").stdout
    assert "can't be written at the moment" in wait_until(
        lambda: text if "can't be written" in (text := one.must("status").stdout) else None, "status tells"), ticks
    written = len(one.so_far().events)
    time.sleep(0.5)  # meanwhile it samples into its buffer
    (disk / "filler").unlink()
    wait_until(lambda: len(one.so_far().named("memory")) > written / 10 and "can be written again" in one.errors(), "writing again")
    one.stop()
    trace = one.load()
    assert trace.is_ended
    assert one.errors().count("No space left") == 1
    if not trace.named("dropped_events"):  # all of it found room in the buffer: then there is no gap
        assert max(trace.steps_ms("memory")[1:]) < 450


def test_what_the_buffer_can_not_hold_is_counted_in_the_trace(service, small_tmpfs):
    disk = small_tmpfs(1 << 20)
    one = service(prefix=disk / "trace", DFTRACER_TRACE_INTERVAL_MS=2, DFTRACER_FLUSH_INTERVAL_MS=50, DFTRACER_WRITE_BUFFER_SIZE=65536)
    one.start()
    one.wait_for("memory", 3)
    fill(disk)
    wait_until(lambda: " 0 dropped" not in one.must("status").stdout, "dropped events")
    (disk / "filler").unlink()
    one.wait_for("dropped_events")
    stopped = one.stop()
    trace = one.load()
    dropped = trace.args("dropped_events")
    assert all(args["count"] > 0 for args in dropped)
    assert sum(args["count"] for args in dropped) == trace.args("end")[0]["dropped"]
    assert f"({trace.args('end')[0]['dropped']} could not be written and are missing)" in stopped.stdout


def test_stop_on_a_full_disk_says_what_is_missing(service, small_tmpfs):
    disk = small_tmpfs(1 << 20)
    one = service(prefix=disk / "trace", DFTRACER_TRACE_INTERVAL_MS=10, DFTRACER_FLUSH_INTERVAL_MS=50)
    one.start()
    one.wait_for("memory", 3)
    fill(disk)
    wait_until(lambda: "No space left" in one.errors(), "a word about the full disk")
    stopped = one.call("stop")
    assert stopped.returncode == 1
    assert "is not complete" in stopped.stderr and "No space left on device" in stopped.stderr
    assert one.call("status").returncode == 3
    subprocess.run(["gzip", "-t", one.path()], check=True)


def test_start_on_a_full_disk_fails_and_leaves_nothing(service, small_tmpfs):
    disk = small_tmpfs(1 << 16)
    fill(disk)
    one = service(prefix=disk / "trace")
    started = one.call("start")
    assert started.returncode == 1 and "No space left on device" in started.stderr
    assert not one.traces() and not one.pid_file.exists()


def test_a_log_dir_on_a_full_disk_is_refused(service, small_tmpfs):
    disk = small_tmpfs(1 << 16)
    fill(disk)
    one = service(log_dir=disk)
    started = one.call("start")
    assert started.returncode == 1 and "No space left on device" in started.stderr and str(disk) in started.stderr
    assert not one.traces() and not one.pid_file.exists()


def test_a_log_dir_without_inodes_is_refused(service, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts a small file system")
    disk = tmp_path / "few"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2", "cicada-test", disk], check=True)
    try:
        one = service(log_dir=disk)
        started = one.call("start")
        assert started.returncode == 1 and "No space left on device" in started.stderr
        assert not one.traces()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_directory_that_is_removed_while_running_is_said_once_and_the_trace_goes_on_when_it_is_back(service, tmp_path):
    directory = tmp_path / "traces"
    directory.mkdir()
    one = service(prefix=directory / "trace", DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_FLUSH_INTERVAL_MS=50)
    one.start()
    one.wait_for("memory", 3)
    shutil.rmtree(directory)
    wait_until(lambda: "No such file or directory" in one.errors(), "a word about the directory")
    pid = one.pid()
    directory.mkdir()
    one.wait_for("memory", 3)
    assert one.pid() == pid
    one.stop()
    trace = one.load()
    assert trace.is_ended and trace.events[0]["name"] == "start" and trace.named("HH")
    assert one.errors().count("No such file or directory") == 1
    assert one.errors().count("was removed, and is begun anew") == 1


def test_stop_while_the_directory_is_gone_fails_with_the_reason(service, tmp_path):
    directory = tmp_path / "traces"
    directory.mkdir()
    one = service(prefix=directory / "trace", DFTRACER_FLUSH_INTERVAL_MS=50)
    one.start()
    one.wait_for("memory", 3)
    shutil.rmtree(directory)
    wait_until(lambda: "No such file or directory" in one.errors(), "a word about the directory")
    stopped = one.call("stop")
    assert stopped.returncode == 1 and "No such file or directory" in stopped.stderr
    assert not directory.exists()


def test_a_removed_log_dir_does_not_end_the_service(service):
    one = service()
    one.start()
    pid = one.pid()
    shutil.rmtree(one.log_dir)
    one.wait_for_ticks(5)
    one.signal = lambda number: os.kill(pid, number)
    one.signal(signal.SIGHUP)
    one.log_dir.mkdir()
    assert f"pid {pid}" in one.must("status").stdout
    one.stop()
    assert one.load().is_ended


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.plain_build  # a sanitizer writes files of its own before main
def test_a_limit_of_file_size_is_told_by_name(service):
    """Not by SIGXFSZ, which ends a program without a word of its own."""
    done = service().call("start", preexec_fn=limit_file_size)
    assert done.returncode == 1 and "File too large" in done.stderr


def test_kills_at_any_moment_leave_valid_traces_that_lack_one_flush_interval_at_most(service):
    """Whole lines, valid gzip, and events up to one flush interval (and one tick) before the kill."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    flush_ms, tick_ms = 200, 10
    for _ in range(rounds(15, 100)):
        one = service(DFTRACER_TRACE_INTERVAL_MS=tick_ms, DFTRACER_FLUSH_INTERVAL_MS=flush_ms)
        one.start()
        pid = one.pid()
        time.sleep(chance.uniform(0, 0.7))
        path = one.path()
        flushed = tracereader.unpack_so_far(path)
        killed_us = time.time_ns() // 1000
        os.kill(pid, signal.SIGKILL)
        one.wait_for_end(pid)
        subprocess.run(["gzip", "-t", path], check=True)
        assert tracereader.unpack_so_far(path).startswith(flushed), f"seed {seed}: what had been flushed stays as it was"
        trace = tracereader.load(path, has_counters=False)
        # The start event is in the file in any case, and stands for the time before the first flush.
        last_us = max(event["ts"] for event in trace.events if "ts" in event)
        assert killed_us - last_us < (flush_ms + 10 * tick_ms) * 1000, f"seed {seed}"
        path.unlink()


@pytest.fixture
def frozen_disk(tmp_path):
    """A file system that answers no write from when it is frozen until it is thawed, as that of a dead server."""

    class Disk:
        directory = tmp_path / "disk"

        def freeze(self):
            subprocess.run(["fsfreeze", "--freeze", self.directory], check=True)

        def thaw(self):
            subprocess.run(["fsfreeze", "--unfreeze", self.directory], check=False, capture_output=True)

    missing = [program for program in ("mkfs.ext4", "fsfreeze") if not shutil.which(program, path="/usr/sbin:/sbin:/usr/bin")]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root, mkfs.ext4 and fsfreeze: freezes a file system {missing}")
    disk = Disk()
    disk.directory.mkdir()
    with open(tmp_path / "image", "wb") as image:
        image.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", tmp_path / "image"], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", tmp_path / "image", disk.directory], check=False, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs loop devices: {mounted.stderr}")
    yield disk
    disk.thaw()
    wait_until(lambda: subprocess.run(["umount", disk.directory], check=False, capture_output=True).returncode == 0, "the disk to be left")


def test_a_file_system_that_hangs_stops_neither_the_samples_nor_the_service(service, frozen_disk):
    one = service(prefix=frozen_disk.directory / "trace", DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_FLUSH_INTERVAL_MS=50,
                  DFTRACER_STOP_TIMEOUT_MS=3000)
    one.start()
    pid = one.pid()
    one.wait_for("memory", 3)
    frozen_disk.freeze()

    def samples():
        return int(re.search(r"samples +(\d+)", one.must("status").stdout).group(1))

    before = samples()
    wait_until(lambda: samples() > before + 100, "samples that are taken all the same")
    stopped = one.call("stop")
    assert stopped.returncode == 1 and "did not answer within" in stopped.stderr
    assert one.call("status").returncode == 3, "what is left of the process holds no lock"
    frozen_disk.thaw()
    one.wait_for_end(pid)
    subprocess.run(["gzip", "-t", one.path()], check=True)


def test_a_file_system_that_hangs_for_a_while_costs_nothing(service, frozen_disk):
    one = service(prefix=frozen_disk.directory / "trace", DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_FLUSH_INTERVAL_MS=50)
    one.start()
    one.wait_for("memory", 3)
    frozen_disk.freeze()
    time.sleep(1)
    frozen_disk.thaw()
    ticks = len(one.so_far().named("memory"))
    one.wait_for("memory", ticks + 5)
    one.stop()
    trace = one.load()
    assert trace.is_ended and not trace.named("dropped_events")
    assert max(trace.steps_ms("memory")[1:]) < 500


def test_a_starter_that_is_killed_leaves_no_service_behind(service, frozen_disk):
    """Who started it was told nothing, so nobody would stop it."""
    one = service(prefix=frozen_disk.directory / "trace")
    frozen_disk.freeze()
    starter = subprocess.Popen([*one.command, "start", one.log_dir], env=one.env, stderr=subprocess.PIPE)
    wait_until(lambda: len(services_of(one.log_dir)) == 2, "the daemon beside its starter")
    starter.kill()
    starter.communicate()
    frozen_disk.thaw()
    wait_until(lambda: not services_of(one.log_dir), "the end of the daemon")
    assert not one.pid_file.exists() and not one.traces()
