# SPDX-License-Identifier: BSD-3-Clause
"""What is in a trace, what it is called, and that none is ever lost."""
import json
import os
import signal
import subprocess
import time

import pytest

from support import tracereader
from support.service import HOST
from support.waiting import wait_until


def test_records_are_what_readers_rely_on(service):
    one = service()
    one.start()
    pid = one.pid()
    one.wait_for_ticks(3)
    one.stop()
    trace = one.load()
    first, host, last = trace.events[0], trace.named("HH")[0], trace.events[-1]

    assert list(first)[:9] == ["id", "name", "cat", "type", "pid", "tid", "ts", "dur", "ph"]
    assert (first["id"], first["name"], first["cat"], first["type"], first["pid"], first["dur"], first["ph"]) == (
        0, "start", "dftracer", 1, pid, 0, 1)
    assert (host["cat"], host["type"], host["ph"]) == ("dftracer", 1, 4)
    assert host["args"] == {"hhash": tracereader.host_hash(HOST), "name": HOST, "value": tracereader.host_hash(HOST)}
    assert (last["id"], last["name"], last["cat"], last["type"], last["ph"]) == (len(trace.events), "end", "dftracer", 1, 1)
    assert last["args"]["num_events"] == len(trace.events)
    assert set(last["args"]) >= {"cfg", "build", "used"} and last["args"]["used"]["PSUTIL"] == 1

    memory = trace.named("memory")[0]
    assert list(memory) == ["name", "cat", "type", "ts", "ph", "pid", "tid", "args"]
    assert (memory["cat"], memory["type"], memory["ph"], memory["pid"], memory["tid"]) == ("sys", 7, 2, pid, 0)
    kernels = {line.split(":")[0] for line in open("/proc/meminfo", encoding="ascii")}
    assert set(memory["args"]) - {"hhash", "used_pct"} == kernels
    kb = int(open("/proc/meminfo", encoding="ascii").readline().split()[1])
    assert memory["args"]["MemTotal"] == kb
    assert 0 < memory["args"]["used_pct"] < 100


def test_percentages_of_each_cpu_add_up_to_100(service):
    one = service(DFTRACER_TRACE_INTERVAL_MS=50)
    one.start()
    one.wait_for("cpu", 10)
    one.stop()
    cpus = [e for e in one.load().counters if e["name"].split("-")[0] == "cpu"]
    assert {e["name"] for e in cpus} == {"cpu"} | {f"cpu-{i}" for i in os.sched_getaffinity(0)}
    for event in cpus:
        values = {key: value for key, value in event["args"].items() if key != "hhash"}
        assert set(values) == {f"{name}_pct" for name in (
            "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")}
        assert all(0 <= value <= 100 for value in values.values())
        assert abs(sum(values.values()) - 100) < 0.1


def test_all_records_of_a_tick_carry_one_stamp(service):
    one = service()
    one.start()
    one.wait_for("cpu", 5)
    one.stop()
    trace = one.load()
    by_stamp = {}
    for event in trace.counters:
        by_stamp.setdefault(event["ts"], []).append(event["name"])
    for names in by_stamp.values():
        assert len(names) == len(set(names))
    ticks = [names for names in by_stamp.values() if "cpu" in names]
    assert len(ticks) >= 5 and all({"memory", "load", "vm"} <= set(names) for names in ticks)


@pytest.mark.parametrize("unit, per_second", [("US", 1e6), ("NS", 1e9), ("MS", 1e3), ("SEC", 1)])
def test_stamps_are_in_the_unit_that_was_asked_for(service, unit, per_second):
    one = service(DFTRACER_TIME_METRIC=unit)
    before = time.time()
    one.start()
    one.wait_for("memory", 2)
    one.stop()
    trace = one.load()
    for event in trace.events:
        assert int(before * per_second) <= event.get("ts", before * per_second) <= time.time() * per_second
    assert {"name": "time_metric", "value": unit}.items() <= trace.args("CM")[0].items()


def test_without_compression_the_trace_is_plain(service):
    one = service(DFTRACER_TRACE_COMPRESSION=0)
    one.start()
    one.wait_for_ticks(2)
    one.stop()
    assert one.load(suffix=".pfw").is_ended
    assert one.traces() == [one.path(suffix=".pfw")]


def test_without_metadata_there_are_no_settings_in_it(service):
    one = service(DFTRACER_INC_METADATA=0)
    one.start()
    one.wait_for_ticks(1)
    one.stop()
    trace = one.load()
    assert not {"cfg", "build", "used"} & (set(trace.args("end")[0]) | set(trace.args("start")[0]))
    assert not trace.named("CM") and not trace.named("PR")


def test_core_affinity_is_written_down(service):
    one = service(DFTRACER_SET_CORE_AFFINITY=1)
    one.start()
    one.wait_for_ticks(1)
    one.stop()
    values = {args["name"]: args["value"] for args in one.load().args("PR")}
    assert values["core_affinity"] == sorted(os.sched_getaffinity(0))


def test_memory_as_percentages_for_readers_of_old_traces(service, node):
    one = service(DFTRACER_MEMORY_PCT=1, **node.variables())
    one.start()
    one.wait_for("memory")
    one.stop()
    args = one.load().args("memory")[0]
    assert args["MemTotal"] == pytest.approx(100 * 16000000 / 12000000, abs=1e-3)
    assert args["MemAvailable"] == 100
    assert args["used_pct"] == 25


def test_the_last_interval_is_not_lost(service, node):
    """A job that ends between two ticks has its counters in full."""
    node.set_interfaces({"eth0": (1000, 0)})
    one = service(DFTRACER_TRACE_INTERVAL_MS=3600000, **node.variables())
    one.start()
    node.set_interfaces({"eth0": (5000, 0)})
    one.stop()
    assert sum(args["bytes_recv"] for args in one.load().args("net-eth0")) == 4000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_gracefully(service, number):
    one = service()
    one.start()
    pid = one.pid()
    one.wait_for_ticks(2)
    os.kill(pid, number)
    one.wait_for_end(pid)
    assert one.load().is_ended
    assert not one.pid_file.exists()


def test_a_signal_twice_within_a_millisecond_ends_it_gracefully(service):
    one = service()
    one.start()
    pid = one.pid()
    one.wait_for_ticks(1)
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGTERM)
    one.wait_for_end(pid)
    assert one.load().is_ended


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_a_death_leaves_a_valid_trace(service, number):
    one = service()
    one.start()
    pid = one.pid()
    one.wait_for_ticks(3)
    os.kill(pid, number)
    one.wait_for_end(pid)
    trace = one.load()
    assert not trace.is_ended and len(trace.stamps) >= 3


def test_usr1_flushes_now(service):
    one = service(DFTRACER_FLUSH_INTERVAL_MS=3600000, DFTRACER_TRACE_INTERVAL_MS=1000)
    one.start()
    written = len(one.so_far().events)

    def flushed():
        one.signal(signal.SIGUSR1)
        return len(one.so_far().events) > written

    wait_until(flushed, "a flush")


def test_hup_reopens_the_log_files(service):
    one = service(DFTRACER_LOG_LEVEL="INFO")
    one.start()
    for suffix in ("out", "err"):
        one.file(suffix).rename(one.file(suffix + ".old"))
    one.signal(signal.SIGHUP)
    wait_until(lambda: one.file("out").exists() and "reopened" in one.errors(), "new log files, and a line in one")
    links = {os.readlink(f"/proc/{one.pid()}/fd/{fd}") for fd in (1, 2)}
    assert links == {str(one.file("out")), str(one.file("err"))}


def test_an_earlier_trace_is_renamed_and_never_destroyed(service):
    one = service()
    kept = {}
    for number in range(1, 4):
        one.start()
        one.wait_for_ticks(1)
        one.stop()
        kept[number] = one.path().read_bytes()
        assert "renamed to" in one.start().stderr
        assert {n: one.path(n).read_bytes() for n in kept} == kept
        one.stop()
        one.path().unlink()


def test_as_many_renamed_traces_stay_as_were_asked_for(service):
    one = service(DFTRACER_KEEP=3)
    for _ in range(6):
        one.start()
        one.stop()
    one.path(100).write_text("of a later time")
    (one.prefix.parent / f"{one.prefix.name}_{HOST}.note.pfw.gz").write_text("not ours")
    started = one.start()
    assert "was removed: DFTRACER_KEEP is 3" in started.stderr
    names = [path.name for path in one.traces()]
    stem = f"{one.prefix.name}_{HOST}"
    assert names == sorted([f"{stem}.pfw.gz", f"{stem}.5.pfw.gz", f"{stem}.100.pfw.gz", f"{stem}.101.pfw.gz", f"{stem}.note.pfw.gz"])


def test_a_file_of_another_user_is_left_where_it_is(service, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a file of another user")
    one = service()
    one.path().write_text("theirs")
    os.chown(one.path(), 65534, 65534)
    started = one.start()
    assert "belongs to another user" in started.stderr
    assert one.path().read_text() == "theirs"
    one.stop()
    assert tracereader.Trace(one.path(1), tracereader.events_so_far(one.path(1))).is_ended


def test_four_log_dirs_and_one_prefix_are_four_traces(service, tmp_path):
    """What the users' scripts do when mpirun puts four tasks on one host."""
    four = [service(log_dir=tmp_path / f"log{i}") for i in range(4)]
    for turn in range(3):
        starting = [subprocess.Popen([*one.command, "start", one.log_dir], env=one.env, stderr=subprocess.PIPE, text=True) for one in four]
        words = [process.communicate()[1] for process in starting]
        assert [process.returncode for process in starting] == [0] * 4, words
        assert sum("is being written by another service" in text for text in words) == 3
        for one in four:
            assert one.must("status").stdout.count("trace_")
        four[0].wait_for_ticks(1)
        stopped = [one.stop().stdout for one in four]
        assert len(set(stopped)) == 4
        assert len(four[0].traces()) == 4 * (turn + 1)
    for path in four[0].traces():
        assert tracereader.Trace(path, tracereader.events_so_far(path)).is_ended, path


def test_collectors_can_be_chosen_and_left_out(service):
    only = service(DFTRACER_COLLECTORS="cpu,memory")
    only.start()
    only.wait_for("cpu")
    only.stop()
    assert {name.split("-")[0] for name in only.load().names()} == {"cpu", "memory"}
    without = service(DFTRACER_COLLECTORS="-memory")
    without.start()
    without.wait_for("cpu")
    without.stop()
    names = without.load().names()
    assert "memory" not in names and {"cpu", "load"} <= names


def test_the_end_tells_what_the_service_itself_cost(service):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20)
    one.start()
    one.wait_for("cpu", 20)
    one.stop()
    used = one.load().args("end")[0]["used"]
    cpu_seconds = used["user_seconds"] + used["system_seconds"]
    of_collectors = sum(collector["cpu_seconds"] for collector in used["collectors"].values())
    assert 0 < of_collectors < cpu_seconds
    assert used["max_rss_kb"] > 0 and used["ticks"] >= 20
    assert all(collector["runs"] >= 20 and collector["failures"] == 0 for collector in used["collectors"].values()), used


def test_many_threads_give_the_same_trace(service):
    one = service(DFTRACER_LIBUV_THREADS=1024, DFTRACER_TRACE_INTERVAL_MS=10)
    one.start()
    one.wait_for("memory", 50)
    threads = len(os.listdir(f"/proc/{one.pid()}/task"))
    one.stop()
    trace = one.load()
    assert trace.is_ended and threads > 10
    for name in ("cpu", "memory"):
        stamps = [e["ts"] for e in trace.named(name)]
        assert len(stamps) == len(set(stamps))


def test_lines_are_json_for_jq_too(service):
    one = service()
    one.start()
    one.wait_for_ticks(2)
    one.stop()
    done = subprocess.run(f"zcat {one.path()} | jq -c .", shell=True, check=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == len(one.load().events)
    assert json.loads(done.stdout.splitlines()[-1])["name"] == "end"


def test_synced_traces_are_traces(service):
    one = service(DFTRACER_FSYNC=1)
    one.start()
    one.wait_for_ticks(3)
    one.stop()
    assert one.load().is_ended
