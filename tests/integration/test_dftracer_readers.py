# SPDX-License-Identifier: BSD-3-Clause
"""The readers of the DFTracer project itself take our traces: dftracer-utils, from PyPI."""
import json
import signal
import subprocess
import sys

import pytest

from support.waiting import wait_until

PACKAGE = "dftracer-utils==0.0.14"
pytestmark = pytest.mark.plain_build  # the traces are the same, and the readers aren't ours to watch


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """A function that runs one of their programs on a directory, and returns what it prints."""
    place = tmp_path_factory.mktemp("dftracer-utils")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    installing = subprocess.run([place / "venv/bin/pip", "install", "--quiet", "--only-binary", ":all:", PACKAGE],
                                capture_output=True, text=True, timeout=300, check=False)
    if installing.returncode != 0:
        pytest.skip(f"{PACKAGE} can't be installed: {installing.stderr[-200:]}")

    def run(program, directory, *words):
        command = [place / "venv/bin" / f"dftracer_{program}", "--directory", directory, "--log-level", "error", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def is_event(event):
    """Their programs don't count metadata."""
    return event["ph"] not in (4, "M")


def test_their_programs_read_what_ours_wrote(service, readers, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    one = service(prefix=traces / "run", DFTRACER_TRACE_INTERVAL_MS=20)
    one.start()
    wait_until(lambda: len(one.so_far().events) > 200, "events")
    one.stop()
    events = one.so_far().events
    assert f"1 passed, 0 failed, {len(events)} lines" in readers("validate", traces)
    counted = [event for event in events if is_event(event)]
    assert readers("event_count", traces, "--index-dir", tmp_path / "index").split()[-1] == str(len(counted))
    summary = json.loads(readers("stats", traces, "--json", "--index-dir", tmp_path / "stats-index"))[0]
    assert summary["total_events"] == len(counted)
    assert summary["time_range"]["min_timestamp_us"] == min(event["ts"] for event in counted)
    assert summary["time_range"]["max_timestamp_us"] == max(event["ts"] + event.get("dur", 0) for event in counted)
    for result in summary["results"]:
        assert result["count"] == sum(event["cat"] == result["name"] for event in counted), result["name"]


def test_their_programs_read_the_trace_of_a_service_that_was_killed(service, readers, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    one = service(prefix=traces / "run", DFTRACER_TRACE_INTERVAL_MS=20)
    one.start()
    wait_until(lambda: len(one.so_far().events) > 200, "events")
    pid = one.pid()
    one.signal(signal.SIGKILL)
    one.wait_for_end(pid)
    assert f"1 passed, 0 failed, {len(one.so_far().events)} lines" in readers("validate", traces)
