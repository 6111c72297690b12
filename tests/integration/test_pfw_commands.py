# SPDX-License-Identifier: BSD-3-Clause
"""The pfw commands on traces that are in order: what they print, how they are used, and what they refuse."""
import gzip
import json
import os
import statistics
from pathlib import Path

import pytest

from support.pfw import pfw, text
from support.pfw_traces import START_US, Trace, host_hash, whole

DATA = Path(__file__).resolve().parents[1] / "data" / "pfw"


@pytest.fixture
def two_hosts(tmp_path):
    """Two traces of 30 seconds each, of two hosts."""
    paths = []
    for number in (1, 2):
        trace = whole(f"node{number}", ticks=30, seed=number)
        paths.append(tmp_path / f"node{number}.pfw.gz")
        paths[-1].write_bytes(trace.gz())
    return paths


def test_info_tells_a_person_what_there_is(tmp_path):
    trace = Trace().begin().ticks(10)
    trace.metadata("dropped_events", count=1234)
    trace.metadata("clock_step", offset_us=3600000000)
    trace.pause(20).ticks(10).end()
    (tmp_path / "a.pfw.gz").write_bytes(trace.gz())
    told = text("info", tmp_path / "a.pfw.gz", env={**os.environ, "TZ": "XYZ-2"})
    assert f"events      {len(trace.lines)} (2 complete, 120 counters, 3 metadata)" in told
    assert f"host        node1 ({host_hash('node1')})" in told
    assert "span      2026-12-01 06:19:42.000 +0200 to 2026-12-01 06:20:22.000 +0200 (40 s)" in told
    assert "interval  1 s (set to 1 s)" in told
    assert "gaps      1: 21 s after 2026-12-01 06:19:51.000 +0200" in told
    assert "dropped   1,234 events" in told
    assert "clock     was set 1 time" in told
    assert "runs      1, 1 with an end" in told
    assert "sys 4: cpu, cpu-0, cpu-1, memory" in told


def test_info_tells_a_program_the_same(two_hosts):
    first, second = json.loads(text("info", "--json", *two_hosts))
    assert first["file"] == str(two_hosts[0])
    assert (first["events"], first["counters"], first["complete"], first["metadata"]) == (183, 180, 2, 1)
    (host,) = second["hosts"]
    assert (host["name"], host["hash"]) == ("node2", host_hash("node2"))
    assert (host["start"], host["end"]) == ("2026-12-01T04:19:42.000000000Z", "2026-12-01T04:20:12.000000000Z")
    assert host["seconds"] == 30 and host["interval_seconds"] == 1 and host["interval_set_seconds"] == 1
    assert host["gaps"] == [] and host["gaps_are_all"] is True
    assert {"cat": "io", "name": "vda", "events": 30} in host["series"]


def test_names_cannot_play_with_the_terminal(tmp_path):
    trace = Trace("evil\x1b[2J\nhost").begin()
    trace.counter("net-\x1b]0;x\x07", "net", **{"k\x1b[1m": 1})
    (tmp_path / "a.pfw").write_bytes(trace.text())
    for command in ("info", "check", "stats"):
        done = pfw(command, tmp_path / "a.pfw", status=0)
        assert b"\x1b" not in done.stdout and b"\x07" not in done.stdout
    assert json.loads(text("stats", "--json", "--cat", "net", tmp_path / "a.pfw"))[0]["key"] == "k\x1b[1m"


def test_check_is_content_with_a_whole_trace(two_hosts):
    assert text("check", "--strict", *two_hosts).splitlines() == [f"{path}: 183 events, 0 problems, 0 notes"
                                                                  for path in two_hosts]
    assert text("check", "--quiet", *two_hosts) == ""


def test_check_names_each_kind_of_problem(tmp_path):
    def report(trace, *options, status=1):
        path = tmp_path / "a.pfw"
        path.write_bytes(trace.text())
        return text("check", *options, path, status=status)

    gap = Trace().begin().ticks(10).pause(5).ticks(3).end()
    assert "problem: host node1: no sample for 6.000 s after 2026-12-01" in report(gap)

    late = Trace().begin().ticks(10).pause(0.4).ticks(3).end()
    report(late, status=0)

    falling = Trace().begin().ticks(3).pause(-2).ticks(3).end()
    assert "host node1, series 'cpu': the time stamp 1796098783000000 is 1.000000 s before the last one" in \
        report(falling)

    nameless = Trace().begin().ticks(3)
    del nameless.lines[1]
    assert 'no "HH" event gives its name' in report(nameless)

    short = whole()
    del short.lines[5]
    assert "the end event counts 123 events of its run, but there are 122" in report(short)

    dropping = Trace().begin().ticks(3)
    dropping.metadata("dropped_events", count=7)
    assert "problem: host node1: 7 events were dropped" in report(dropping)

    keyless = Trace().begin()
    keyless.put(name="cpu", cat="sys", ph=2, pid=1, args={"hhash": keyless.hash})
    assert 'a.pfw:3: problem: event \'cpu\': key "tid" is missing' in report(keyless)
    assert 'a.pfw:3: problem: event \'cpu\': key "ts" is missing' in report(keyless)


def test_check_only_notes_what_is_no_fault_of_the_trace(tmp_path):
    killed = Trace().begin().ticks(5)
    killed.metadata("clock_step", offset_us=-5000000)
    killed.lines.append('{"name":"cpu","name":"cpu","cat":"sys","ph":2,"ts":%d,"pid":4242,"tid":0,"args":{"hhash":"%s"}}'
                        % (killed.now_us, killed.hash))
    path = tmp_path / "a.pfw"
    path.write_bytes(killed.text())
    report = text("check", path)
    assert "a.pfw:34: note: the event has equal keys" in report
    assert "the wall clock was set; it is now -5.000 s ahead" in report
    assert "the run of pid 4242 has no end event" in report
    assert report.endswith("0 problems, 3 notes\n")
    assert text("check", "--strict", path, status=1).endswith("3 problems, 0 notes\n")


def test_check_shows_ten_of_a_kind_or_all(tmp_path):
    path = tmp_path / "a.pfw"
    path.write_bytes(Trace().begin().text() + b"{]\n" * 25)
    assert text("check", path, status=1).count("not JSON") == 10
    assert "15 more like that" in text("check", path, status=1)
    assert text("check", "-a", path, status=1).count("not JSON") == 25


def test_cat_chooses_by_name_category_host_and_time(two_hosts):
    def chosen(*options):
        return [json.loads(line) for line in text("cat", *options, *two_hosts).splitlines()]

    assert len(chosen()) == 366
    assert {event["name"] for event in chosen("--name", "cpu-?")} == {"cpu-0", "cpu-1"}
    assert {event["cat"] for event in chosen("--cat", "[in]*")} == {"io", "net"}
    assert len(chosen("--host", "node2")) == 183
    assert {event["args"]["hhash"] for event in chosen("--host=*2")} == {host_hash("node2")}
    assert len(chosen("--host", host_hash("node1"))) == 183
    stamps = sorted({event["ts"] - START_US for event in chosen("--from", "+5s", "--to", "+7s") if "ts" in event})
    assert stamps == [5000000, 6000000, 7000000]
    assert chosen("--from", "+5s", "--to", "+7s") == chosen("--from", "1796098787", "--to", "2026-12-01T04:19:49Z")
    assert chosen("--name", "nothing") == []


def test_cat_prints_lines_as_they_are(tmp_path):
    line = '{ "name" : "a\\u00e4\\/",  "ph":2, "ts":1796098782000000.0, "args":{"b":1.50, "b":2} }'
    (tmp_path / "a.pfw").write_text(f"  {line}  \n")
    assert text("cat", tmp_path / "a.pfw") == line + "\n"


def test_stats_are_those_of_the_numbers(tmp_path):
    values = [float(value) for value in range(1, 101)]
    trace = Trace().begin()
    for value in values:
        trace.counter("cpu", "sys", user_pct=value, zero=0)
        trace.now_us += 1000000
    (tmp_path / "a.pfw").write_bytes(trace.text())
    user, zero = json.loads(text("stats", "--json", "--name", "cpu", tmp_path / "a.pfw"))
    assert (user["host"], user["cat"], user["name"], user["key"]) == ("node1", "sys", "cpu", "user_pct")
    assert (user["count"], user["min"], user["max"], user["mean"]) == (100, 1, 100, statistics.mean(values))
    assert (user["p50"], user["p99"], user["is_exact"]) == (50, 99, True)
    assert (zero["count"], zero["mean"], zero["max"]) == (100, 0, 0)
    head, row = text("stats", "--name", "cpu", tmp_path / "a.pfw").splitlines()[:2]
    assert head.split() == ["host", "cat", "name", "key", "count", "mean", "p50", "p99", "min", "max"]
    assert row.split() == ["node1", "sys", "cpu", "user_pct", "100", "50.5", "50", "99", "1", "100"]


def test_stats_of_many_numbers_keep_the_stated_error(two_hosts, tmp_path):
    trace = whole(ticks=3000)
    (tmp_path / "a.pfw.gz").write_bytes(trace.gz(700))
    rows = json.loads(text("stats", "--json", tmp_path / "a.pfw.gz"))
    counters = [json.loads(line) for line in trace.lines if '"ph":2' in line]
    for row in rows:
        if row["key"] == "dur":
            continue
        values = sorted(event["args"][row["key"]] for event in counters if event["name"] == row["name"])
        assert row["count"] == len(values) == 3000
        assert (row["min"], row["max"]) == (values[0], values[-1])
        assert row["mean"] == pytest.approx(statistics.fmean(values), rel=1e-9)
        assert row["p50"] == pytest.approx(values[1499], rel=1 / 64)
        assert row["p99"] == pytest.approx(values[2969], rel=1 / 64)


def test_stats_come_in_an_order_that_people_expect(tmp_path):
    trace = Trace("node10").begin()
    for name in ("cpu-10", "cpu-9", "cpu-2"):
        trace.counter(name, "sys", b=1, a=2)
    other = Trace("node9").begin()
    other.counter("cpu-1", "sys", a=1)
    (tmp_path / "a.pfw").write_bytes(trace.text() + other.text())
    rows = json.loads(text("stats", "--json", "--cat", "sys", tmp_path / "a.pfw"))
    assert [(row["host"], row["name"], row["key"]) for row in rows] == [
        ("node9", "cpu-1", "a"), ("node10", "cpu-2", "a"), ("node10", "cpu-2", "b"), ("node10", "cpu-9", "a"),
        ("node10", "cpu-9", "b"), ("node10", "cpu-10", "a"), ("node10", "cpu-10", "b")]


@pytest.mark.parametrize("unit,factor", [("SEC", 1000000), ("MS", 1000), ("US", 1), ("NS", 0.001)])
def test_every_unit_of_time_is_understood_told_or_not(tmp_path, unit, factor):
    trace = whole(ticks=5)
    lines = []
    for line in trace.lines:
        event = json.loads(line)
        if "ts" in event:
            event["ts"] = int(event["ts"] // factor) if factor >= 1 else event["ts"] * 1000
        event["args"].pop("time_metric", None)
        if event["name"] == "start":
            event["args"]["cfg"] = {"time_metric": unit}
        lines.append(event)
    for is_told in (True, False):
        if not is_told:
            lines[0]["args"].pop("cfg")
        (tmp_path / "a.pfw").write_text("".join(json.dumps(event) + "\n" for event in lines))
        (info,) = json.loads(text("info", "--json", tmp_path / "a.pfw"))
        assert (info["time_unit"], info["time_unit_is_told"]) == (unit, is_told)
        assert info["hosts"][0]["start"] == "2026-12-01T04:19:42.000000000Z"
        assert info["hosts"][0]["interval_seconds"] == 1


def test_the_sample_in_the_repository_is_read():
    (info,) = json.loads(text("info", "--json", DATA / "two_nodes.pfw.gz"))
    assert sorted(host["name"] for host in info["hosts"]) == ["node1", "node2"]
    assert "0 problems, 1 note" in text("check", DATA / "two_nodes.pfw.gz")
    (info,) = json.loads(text("info", "--json", DATA / "foreign.pfw"))
    assert info["events"] == 12 and info["hosts"][0]["name"] is None
    assert "net-    lo" in text("info", DATA / "foreign.pfw")


@pytest.mark.parametrize("args,words", [
    ((), "Usage: pfw COMMAND"),
    (("inof", "x"), "there is no command 'inof'"),
    (("cat",), "no file given"),
    (("cat", "--nmae", "x", "y"), "there is no option '--nmae'; there are --name, --cat"),
    (("cat", "-x", "y"), "there is no option '-x'"),
    (("cat", "y", "--name"), "--name needs a value: --name GLOB"),
    (("check", "--quiet=1", "y"), "--quiet takes no value"),
    (("cat", "--from", "yesterday", "y"), "--from: 'yesterday' is no time; write seconds since 1970"),
])
def test_bad_usage_says_what_and_how(args, words):
    done = pfw(*args, status=2)
    assert words in done.stderr.decode()
    assert done.stdout == b""


def test_help_and_version():
    assert text("--version").startswith("pfw (Cicada) ")
    assert "Commands:" in text("--help")
    for command in ("info", "check", "cat", "stats", "perfetto"):
        told = text(command, "--help")
        assert told.startswith(f"Usage: pfw {command} [options] FILE...")
        assert "Exit status: 0" in told and "--salvage" in told
        assert all(len(line) <= 120 for line in told.splitlines())


def test_options_may_stand_behind_files_and_files_may_look_like_options(tmp_path):
    trace = whole(ticks=1)
    (tmp_path / "-a").write_bytes(trace.gz())
    told = text("cat", "--", "-a", cwd=tmp_path)
    assert told.splitlines() == trace.lines
    assert len(text("cat", "./-a", "--name=cpu", cwd=tmp_path).splitlines()) == 1
    assert gzip.decompress(trace.gz()).decode() == told
