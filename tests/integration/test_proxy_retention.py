# SPDX-License-Identifier: BSD-3-Clause
"""What a real proxy keeps, removes and sets aside in its prefix."""
import json
import os
import time

import pytest

from support.proxy import Proxy
from support.waiting import wait_until

DAY_S = 86400


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    (one.prefix / "profiles").mkdir(parents=True)
    (one.prefix / "traces").mkdir()
    yield one
    one.close()


def put(proxy, name, days, size=0):
    path = proxy.prefix / "profiles" / f"{name}.profile"
    path.write_text(json.dumps({"desc": {"jobid": name, "start_time": 1}, "counters": []}) + " " * size)
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return path


def test_old_profiles_go_and_the_log_says_so(proxy):
    old, young = put(proxy, "old", 31), put(proxy, "young", 29)
    proxy.start("--keep-days", 30)
    wait_until(lambda: not old.exists(), "the old profile to go")
    wait_until(lambda: "removed=1" in proxy.log(), "a word in the log")
    assert "old.profile" in proxy.log()
    assert young.exists()
    wait_until(lambda: [job["jobid"] for job in proxy.get("/profiles")] == ["young"], "the list")


def test_the_oldest_go_past_the_size(proxy):
    files = [put(proxy, f"job{days}", days, 700 << 10) for days in (1, 2, 3)]
    proxy.start("--keep-mb", 1)
    wait_until(lambda: [file.exists() for file in files] == [True, False, False], "the oldest to go")


def test_by_default_a_year_is_kept(proxy):
    old, young = put(proxy, "old", 366), put(proxy, "young", 364)
    proxy.start()
    wait_until(lambda: not old.exists(), "the old profile to go")
    assert young.exists()


@pytest.mark.parametrize("options", [("--keep-days", 0, "--keep-mb", 0), ("-i",)])
def test_nothing_goes_when_that_is_wanted(proxy, options):
    old = put(proxy, "old", 5000)
    proxy.start(*options)
    proxy.end()
    assert old.exists()


def test_a_job_that_runs_keeps_its_profile_and_one_that_ends_its_new_one(proxy):
    old = put(proxy, "42", 5000)
    other = put(proxy, "43", 5000)
    proxy.start("--keep-days", 0, "--keep-mb", 0)
    program = proxy.count(1, "42", wait=True)
    proxy.wait_for_value("42", "work", 1)
    proxy.kill()
    proxy.start("--keep-days", 1)
    wait_until(lambda: not other.exists(), "the other to go")
    assert old.exists()
    program.stdin.close()
    assert program.wait(timeout=30) == 0
    program.stdout.close()
    wait_until(lambda: (proxy.prefix / "profiles" / "42.2.profile").exists(), "the new profile")


def test_traces_of_the_existing_proxy_are_set_aside(proxy):
    trace = proxy.prefix / "traces" / "42.trace"
    trace.write_bytes(b"\x01\x02 not ours")
    proxy.start()
    wait_until(lambda: not trace.exists(), "the trace to be set aside")
    assert trace.with_name("42.trace.foreign").read_bytes() == b"\x01\x02 not ours"
    wait_until(lambda: "'42.trace'" in proxy.log(), "a word in the log")
