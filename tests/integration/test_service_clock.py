# SPDX-License-Identifier: BSD-3-Clause
"""Ticks and stamps: no drift, no burst, nothing runs backwards, whoever sets the clock or stops the process."""
import os
import signal
import statistics
import subprocess
import time

import pytest

from support import tracereader
from support.service import preloaded
from support.waiting import rounds, wait_until


@pytest.fixture
def wall_clock(tmp_path):
    """A wall clock of the service's own, which the test sets; its other clocks are the kernel's."""

    class WallClock:
        file = tmp_path / "wall-clock"

        def set_ahead(self, seconds):
            other = self.file.with_suffix(".new")
            other.write_text(f"{round(seconds * 1000)}\n")
            other.rename(self.file)

        def variables(self):
            return {**preloaded("wallclock"), "WALLCLOCK_FILE": self.file}

    clock = WallClock()
    clock.set_ahead(0)
    return clock


def test_an_hour_back_and_an_hour_forth_move_no_stamp(service, wall_clock):
    one = service(DFTRACER_TRACE_INTERVAL_MS=50, DFTRACER_LOG_LEVEL="WARN", **wall_clock.variables())
    one.start()
    for offset_s in (-3600, 0, 3600, 0):
        steps = len(one.so_far().named("clock_step"))
        ticks = len(one.so_far().named("cpu"))
        wall_clock.set_ahead(offset_s)
        one.wait_for("clock_step", steps + 1)
        one.wait_for("cpu", ticks + 10)
    one.stop()
    trace = one.load()
    offsets = [round(args["offset_us"] / 1e6) for args in trace.args("clock_step")]
    assert offsets == [-3600, 0, 3600, 0]
    stamps = [e["ts"] for e in trace.events if "ts" in e]
    assert stamps == sorted(stamps)
    assert abs(stamps[-1] / 1e6 - time.time()) < 60, "the stamps are those of the clock at the start"
    assert max(trace.steps_ms("cpu")) < 1000
    for args in trace.args("cpu"):
        assert all(0 <= value <= 100 for key, value in args.items() if key != "hhash")
    assert one.errors().count("the wall clock was set") == 4


def test_a_clock_that_is_slewed_makes_no_event(service, wall_clock):
    one = service(DFTRACER_TRACE_INTERVAL_MS=50, **wall_clock.variables())
    one.start()
    one.wait_for("cpu", 3)
    wall_clock.set_ahead(0.5)
    one.wait_for("cpu", 13)
    one.stop()
    assert not one.load().named("clock_step")


@pytest.fixture
def busy_machine():
    load = [subprocess.Popen(["/usr/bin/python3", "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    yield
    for process in load:
        process.kill()
        process.wait()


def ticks_of(trace):
    """Stamps of the ticks proper: without the first sample, and without the last, which is at the end."""
    return [e["ts"] for e in trace.named("memory")][1:-1]


def test_ticks_do_not_drift_on_a_busy_machine_and_each_is_accounted_for(service, busy_machine):
    interval_ms, seconds = 100, rounds(6, 60)
    one = service(DFTRACER_TRACE_INTERVAL_MS=interval_ms)
    one.start()
    one.wait_for("memory", seconds * 1000 // interval_ms, timeout_s=2 * seconds + 30)
    one.stop()
    trace = one.load()
    ticks = ticks_of(trace)
    late_ms = [(ts - ticks[0]) / 1000 - round((ts - ticks[0]) / 1000 / interval_ms) * interval_ms for ts in ticks]
    third = len(ticks) // 3
    drift_ms = statistics.median(late_ms[-third:]) - statistics.median(late_ms[:third])
    assert abs(drift_ms) < 5, "the last third is as late as the first"
    used = trace.args("end")[0]["used"]
    on_the_grid = round((ticks[-1] - ticks[0]) / 1000 / interval_ms) + 1
    assert used["ticks"] == len(ticks)
    assert 0 <= on_the_grid - used["ticks"] <= used["ticks_skipped"] + used["ticks_overrun"]
    assert len(set(ticks)) == len(ticks)


def test_ten_milliseconds_are_ten_milliseconds(service):
    one = service(DFTRACER_TRACE_INTERVAL_MS=10)
    one.start()
    one.wait_for("memory", 200)
    one.stop()
    assert statistics.median(one.load().steps_ms("memory")) == pytest.approx(10, abs=1)


def test_a_service_that_was_stopped_for_a_while_makes_one_gap_and_no_burst(service):
    """As a suspended machine or a paused container does."""
    interval_ms = 100
    one = service(DFTRACER_TRACE_INTERVAL_MS=interval_ms)
    one.start()
    one.wait_for("memory", 5)
    one.signal(signal.SIGSTOP)
    time.sleep(1.3)
    one.signal(signal.SIGCONT)
    one.wait_for("memory", 12)
    one.stop()
    trace = one.load()
    steps = trace.steps_ms("memory")[:-1]  # the last sample comes when the end does
    assert len([step for step in steps if step > 1000]) == 1
    assert min(steps) >= interval_ms / 2 - 1, steps
    assert trace.args("end")[0]["used"]["ticks_skipped"] >= 11


def test_a_tick_that_overruns_is_counted_and_not_made_up_for(service, node):
    node.set_cpus(4096, extra="intr " + "1 " * 60000 + "\n")
    one = service(DFTRACER_TRACE_INTERVAL_MS=1, **node.variables())
    one.start()
    one.wait_for("memory", 50)
    one.stop()
    trace = one.load()
    used = trace.args("end")[0]["used"]
    assert used["ticks_overrun"] + used["ticks_skipped"] > 0
    stamps = ticks_of(trace)
    assert len(stamps) == len(set(stamps)) == used["ticks"]


def test_a_first_interval_is_never_tiny(service):
    """A tick directly after the first sample would measure next to nothing."""
    for _ in range(rounds(3, 20)):
        one = service(DFTRACER_TRACE_INTERVAL_MS=200, DFTRACER_COLLECTORS="memory")
        one.start()
        one.wait_for("memory", 3)
        one.stop()
        assert 99 <= one.load().steps_ms("memory")[0] <= 400


def test_stamps_go_on_rising_over_a_restart(service):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20)
    one.start()
    one.wait_for("memory", 3)
    one.must("restart")
    wait_until(lambda: one.so_far().named("memory"), "samples of the second service")
    one.stop()
    assert tracereader.load(one.path(1)).events[-1]["ts"] < one.load().events[0]["ts"]
