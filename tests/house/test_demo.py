# SPDX-License-Identifier: BSD-3-Clause
"""script/demo in this checkout: what a newcomer sees."""

import gzip
import json
import os
import re
import subprocess

from conftest import ROOT


def demo(*arguments, env=None):
    return subprocess.run([ROOT / "script/demo", *arguments], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})})


def test_demo_leaves_a_trace_of_this_machine_and_can_run_again():
    for _ in range(2):
        # What a user has exported for other runs must not show.
        done = demo("2", env={"DFTRACER_ENABLE": "0", "DFTRACER_TRACE_INTERVAL_MS": "abc", "DFTRACER_CONFIGURATION": "/nonexistent"})
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"These paths start in {ROOT}." in done.stdout.splitlines()
        trace = re.search(r"^The trace: (\S+)$", done.stdout, re.MULTILINE).group(1)
        with gzip.open(ROOT / trace, "rt") as lines:
            events = [json.loads(line) for line in lines]
        names = [event["name"] for event in events]
        assert {"start", "HH", "cpu", "memory", "end"} <= set(names)
        assert names.count("cpu") >= 5
        assert len(list((ROOT / "build/demo").glob("trace_*"))) == 1


def test_demo_refuses_what_is_not_a_number_of_seconds():
    done = demo("soon")
    assert done.returncode == 2 and "'soon'" in done.stderr
