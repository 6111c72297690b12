# SPDX-License-Identifier: BSD-3-Clause
"""
`pfw perfetto` writes Chrome's JSON trace format as its description has it ("Trace Event Format"), stricter than viewers
want it: the viewers' own importer can't be had from a package registry.
"""
import gzip
import json
import os
import signal
import subprocess
import zlib
from pathlib import Path

import pytest

from support.pfw import PFW, pfw, text
from support.pfw_traces import START_US, Trace, whole
from support.waiting import wait_until

# What each phase must have, and of which type.
REQUIRED = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "C": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float), "args": dict},
    "i": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "s": str, "args": dict},
}


def no_duplicates(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), f"equal keys: {pairs}"
    return dict(pairs)


def refuse_constant(word):
    raise AssertionError(f"{word} is no JSON")


def checked(content):
    """The events of a result, after every rule of the format was looked at."""
    events = json.loads(content.decode("utf-8"), object_pairs_hook=no_duplicates, parse_constant=refuse_constant)
    assert isinstance(events, list)
    named = set()
    for event in events:
        required = REQUIRED[event["ph"]]
        assert set(event) == {"ph", *required}, event
        for key, kind in required.items():
            assert isinstance(event[key], kind) and not isinstance(event[key], bool), (key, event)
        if event["ph"] == "M":
            assert event["name"] == "process_name" and isinstance(event["args"]["name"], str)
            assert event["pid"] not in named, "a process has two names"
            named.add(event["pid"])
        if event["ph"] == "C":
            assert event["args"] and all(isinstance(value, (int, float)) for value in event["args"].values())
    assert {event["pid"] for event in events} == named, "a process has no name"
    return events


def counters(events):
    return [event for event in events if event["ph"] == "C"]


def test_a_trace_of_a_killed_service_becomes_a_closed_array(tmp_path):
    trace = Trace().begin().ticks(30)
    (tmp_path / "a.pfw.gz").write_bytes(trace.gz()[:-25])
    done = pfw("perfetto", tmp_path / "a.pfw.gz", status=1)
    events = checked(done.stdout)
    kept = [json.loads(line) for line in text("cat", tmp_path / "a.pfw.gz", status=1).splitlines()]
    samples = [event for event in kept if event["ph"] == 2]
    assert len(counters(events)) == len(samples)
    numbers = [value for event in samples for value in event["args"].values() if not isinstance(value, str)]
    assert sum(len(event["args"]) for event in counters(events)) == len(numbers)
    for sample, event in zip(samples, counters(events)):
        assert (event["name"], event["cat"], event["ts"]) == (sample["name"], sample["cat"], sample["ts"])
        assert event["args"] == {key: value for key, value in sample["args"].items() if key != "hhash"}


def test_several_files_become_one_trace_with_a_process_per_host(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.pfw.gz").write_bytes(whole(f"node{number}", ticks=5, seed=number).gz())
    events = checked(pfw("perfetto", tmp_path / "1.pfw.gz", tmp_path / "2.pfw.gz").stdout)
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert sorted(names.values()) == ["node1", "node2"]
    assert {names[event["pid"]] for event in counters(events)} == {"node1", "node2"}
    assert len(counters(events)) == 60


def test_the_result_is_one_gzip_member_or_none(tmp_path):
    (tmp_path / "a.pfw.gz").write_bytes(whole().gz())
    plain = pfw("perfetto", tmp_path / "a.pfw.gz").stdout
    assert pfw("perfetto", "-o", tmp_path / "b.json", tmp_path / "a.pfw.gz").stdout == b""
    assert (tmp_path / "b.json").read_bytes() == plain
    pfw("perfetto", "-o", tmp_path / "b.json.gz", tmp_path / "a.pfw.gz")
    for content in ((tmp_path / "b.json.gz").read_bytes(), pfw("perfetto", "-z", tmp_path / "a.pfw.gz").stdout):
        member = zlib.decompressobj(31)
        assert member.decompress(content) == plain
        assert member.eof and member.unused_data == b""
    assert not list(tmp_path.glob("*.part"))


def test_slices_and_instants_come_over(tmp_path):
    trace = Trace().begin()
    trace.put(name="read", cat="POSIX", type=3, pid=99, tid=100, ts=START_US, dur=12, ph=1,
              args={"hhash": trace.hash, "fname": "a\"b\\c", "ret": 4096})
    trace.metadata("clock_step", offset_us=5)
    (tmp_path / "a.pfw").write_bytes(trace.text())
    events = checked(pfw("perfetto", tmp_path / "a.pfw").stdout)
    (read,) = [event for event in events if event["name"] == "read"]
    assert (read["ph"], read["ts"], read["dur"], read["tid"]) == ("X", START_US, 12, 100)
    assert read["args"]["fname"] == "a\"b\\c"
    assert {"node1", "node1 pid 99"} == {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert [event["ph"] for event in events if event["name"] == "clock_step"] == ["i"]


def test_nanoseconds_become_microseconds_to_the_last_digit(tmp_path):
    trace = Trace().begin()
    trace.put(name="cpu", cat="sys", ph=2, ts=1796098782398492123, pid=1, tid=1, args={"hhash": trace.hash, "k": 1})
    content = trace.text().replace(b'"time_metric":"US"', b'"time_metric":"NS"')
    (tmp_path / "a.pfw").write_bytes(content)
    assert '"ts":1796098782398492.123,' in text("perfetto", tmp_path / "a.pfw")


def test_a_part_can_be_chosen_and_keeps_the_names_of_hosts(tmp_path):
    (tmp_path / "a.pfw.gz").write_bytes(whole().gz())
    events = checked(pfw("perfetto", "--name", "cpu", "--from", "+5s", "--to", "+6s", tmp_path / "a.pfw.gz").stdout)
    assert [event["ph"] for event in events] == ["M", "C", "C"]
    assert events[0]["args"]["name"] == "node1"


def test_a_trace_is_never_overwritten_by_its_conversion(tmp_path):
    path = tmp_path / "a.pfw.gz"
    path.write_bytes(whole().gz())
    (tmp_path / "link").symlink_to(path)
    before = path.read_bytes()
    for target in (path, tmp_path / "link"):
        assert "is one of the traces" in pfw("perfetto", "-o", target, path, status=2).stderr.decode()
        assert path.read_bytes() == before


def test_a_failed_conversion_leaves_what_was_there(tmp_path):
    target = tmp_path / "b.json"
    target.write_text("old")
    (tmp_path / "a.pfw.gz").write_bytes(whole().gz())
    done = pfw("perfetto", "-o", target, tmp_path / "a.pfw.gz", tmp_path / "missing", status=2)
    assert f"'{target}' was not written" in done.stderr.decode()
    assert target.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.pfw.gz", "b.json"]


def writes_below(pid, directory):
    """Does the process have a file of the directory open? It may have no name: then the link's text ends in (deleted)."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(link).startswith(f"{directory}/"):
                return True
        except FileNotFoundError:
            pass  # closed in between
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_conversion_that_is_ended_leaves_nothing(tmp_path, number):
    running = subprocess.Popen([PFW, "perfetto", "-o", tmp_path / "b.json", "-"], stdin=subprocess.PIPE)
    running.stdin.write(whole().text())
    running.stdin.flush()
    wait_until(lambda: writes_below(running.pid, tmp_path), "a conversion that has begun")
    running.send_signal(number)
    running.stdin.close()
    assert running.wait(timeout=60) == -number
    assert os.listdir(tmp_path) == []


def test_conversions_to_one_file_do_not_disturb_each_other(tmp_path):
    """All begin before any can end; each is whole, so the last one is."""
    target = tmp_path / "b.json"
    (tmp_path / "b.json.part").write_text("a user's own")
    running = [subprocess.Popen([PFW, "perfetto", "-o", target, "-"], stdin=subprocess.PIPE) for _ in range(3)]
    for process in running:
        wait_until(lambda pid=process.pid: writes_below(pid, tmp_path), "a conversion that has begun")
    for process in running:
        process.communicate(whole().text(), timeout=60)
    assert [process.returncode for process in running] == [0, 0, 0]
    checked(target.read_bytes())
    assert sorted(os.listdir(tmp_path)) == ["b.json", "b.json.part"]
    assert (tmp_path / "b.json.part").read_text() == "a user's own"


@pytest.mark.parametrize("is_gzip", [False, True])
def test_the_result_can_be_read_by_pfw_again(tmp_path, is_gzip):
    (tmp_path / "a.pfw.gz").write_bytes(whole().gz())
    target = tmp_path / ("b.json.gz" if is_gzip else "b.json")
    pfw("perfetto", "-o", target, tmp_path / "a.pfw.gz")
    content = gzip.decompress(target.read_bytes()) if is_gzip else target.read_bytes()
    (info,) = json.loads(text("info", "--json", target))
    assert info["events"] == len(checked(content))
