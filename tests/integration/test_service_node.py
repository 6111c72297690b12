# SPDX-License-Identifier: BSD-3-Clause
"""What kernels and machines do to a reader of /proc: on a node made of files, through the whole service to the trace."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.service import IS_SANITIZED
from support.waiting import wait_until

RECORDED = Path(__file__).resolve().parents[1] / "recorded"


def percent(args):
    return {key: value for key, value in args.items() if key.endswith("_pct")}


def test_iowait_that_goes_back_a_little_is_0_and_the_rest_adds_up(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_LOG_LEVEL="WARN", **node.variables())
    ticks = dict(user=100, system=50, idle=1000, iowait=5482)
    node.set_cpus(2, **ticks)
    one.start()
    for turn in range(20):
        ticks["user"] += 2
        ticks["idle"] += 8
        ticks["iowait"] = 5481 + turn % 2
        seen = len(one.so_far().named("cpu"))
        node.set_cpus(2, **ticks)
        wait_until(lambda seen=seen: len(one.so_far().named("cpu")) > seen or one.signal(10), "the next tick")
    one.stop()
    cpus = [args for name in ("cpu", "cpu-0", "cpu-1") for args in one.load().args(name)]
    assert len(cpus) > 20
    for args in cpus:
        values = percent(args)
        assert all(0 <= value <= 100 for value in values.values()), values
        assert abs(sum(values.values()) - 100) < 0.1
    assert not one.errors()


def test_guest_time_is_not_counted_twice(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=3600000, **node.variables())
    node.set_cpus(1, user=1000, idle=1000, guest=500)
    one.start()
    node.set_cpus(1, user=1060, idle=1040, guest=550)
    one.stop()
    values = percent(one.load().args("cpu-0")[0])
    assert (values["user_pct"], values["guest_pct"], values["idle_pct"]) == (10, 50, 40)


def test_4096_cpus_and_a_huge_interrupt_line(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=200, DFTRACER_SET_CORE_AFFINITY=1, DFTRACER_COLLECTORS="cpu", **node.variables())
    interrupts = "intr " + " ".join(["123456"] * 60000) + "\n"
    node.set_cpus(4096, extra=interrupts)
    one.start()
    for turn in range(10):
        node.set_cpus(4096, extra=interrupts, user=110 + 7 * turn, system=103 + turn, idle=190 + 13 * turn)
        one.signal(10)
        time.sleep(0.2)
    status = Path(f"/proc/{one.pid()}/status").read_text()
    one.stop()
    trace = one.load()
    by_stamp = {}
    for event in trace.counters:
        by_stamp.setdefault(event["ts"], []).append(event["name"])
    sizes = {len(names) for names in by_stamp.values()}
    assert 4097 in sizes and max(sizes) == 4097
    assert len(trace.names()) == 4097, "no names are invented out of long lines"
    assert trace.args("PR")[-1]["value"] == sorted(os.sched_getaffinity(0))
    if not IS_SANITIZED:
        kb = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
        assert kb < 40 * 1024


def test_nul_bytes_in_diskstats_spoil_only_themselves(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20, DFTRACER_LOG_LEVEL="WARN", **node.variables())
    line = b"   8       0 sda 1%d 0 8 1 1 0 8 1 0 1 2\n"
    node.set_disks(line % 0 + bytes(4096))
    one.start()
    for turn in range(5):
        node.set_disks(line % turn + bytes(4096))
        one.wait_for("sda", 2 * (turn + 1))
    one.stop()
    trace = one.load()
    assert sum(args["reads_completed"] for args in trace.args("sda")) == 4
    assert [e["name"] for e in trace.counters if e["cat"] == "io"] == ["sda"] * len(trace.named("sda"))
    assert len(one.errors().splitlines()) <= 1


def test_a_disk_keeps_its_name_and_says_its_readable_one(service, node):
    readable = 'vg "0"\\x2droot'
    node.write("sys/block/dm-0/dm/name", readable + "\n")
    node.write("sys/class/block/dm-0/dm/name", readable + "\n")
    node.set_disks(" 253       0 dm-0 1 0 8 1 1 0 8 1 0 1 2\n")
    one = service(**node.variables())
    one.start()
    one.wait_for("dm-0", 2)
    one.stop()
    done = subprocess.run(f"zcat {one.path()} | jq -r 'select(.name == \"dm-0\") | .args.label'", shell=True, check=True,
                          capture_output=True, text=True)
    assert set(done.stdout.splitlines()) == {readable}


def test_a_disk_that_is_listed_twice_is_one_series(service, node):
    node.set_disks("   8       0 sda 1 0 8 1 1 0 8 1 0 1 2\n" * 2)
    one = service(**node.variables())
    one.start()
    one.wait_for("sda", 3)
    one.stop()
    stamps = [e["ts"] for e in one.load().named("sda")]
    assert len(stamps) == len(set(stamps))


def test_a_counter_that_wraps_or_is_reset_makes_no_giant_value(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20, **node.variables())
    steps = [4294967000, 200, 0, 500, 700]
    node.set_interfaces({"eth0": (steps[0], 1)})
    one.start()
    one.wait_for("net-eth0", 1)
    for value in steps[1:]:
        seen = len(one.so_far().named("net-eth0"))
        node.set_interfaces({"eth0": (value, 1)})
        one.wait_for("net-eth0", seen + 2)
    one.stop()
    values = [args["bytes_recv"] for args in one.load().args("net-eth0")]
    assert all(0 <= value <= 500 for value in values), values
    assert sum(values) <= 700


def test_columns_of_net_dev_are_read_by_their_names(service, node):
    node.write("proc/net/dev",
               "Inter-|   Receive                            |  Transmit\n"
               " face |packets bytes errs drop fifo frame compressed multicast|packets bytes errs drop fifo colls carrier compressed\n"
               "  eth0: 7 70000 0 0 0 0 0 0 9 90000 0 0 0 0 0 0\n")
    one = service(DFTRACER_TRACE_INTERVAL_MS=3600000, **node.variables())
    one.start()
    node.write("proc/net/dev",
               "Inter-|   Receive                            |  Transmit\n"
               " face |packets bytes errs drop fifo frame compressed multicast|packets bytes errs drop fifo colls carrier compressed\n"
               "  eth0: 8 71000 0 0 0 0 0 0 11 92000 0 0 0 0 0 0\n")
    one.stop()
    args = one.load().args("net-eth0")[0]
    assert (args["packets_recv"], args["bytes_recv"], args["packets_sent"], args["bytes_sent"]) == (1, 1000, 2, 2000)


def test_names_may_hold_any_bytes(service, node):
    names = [b'a"b', b"back\\slash", b"\x01\x02", b"\xff\xfe", "ümlaut".encode(), b"a'b`$(c)", b"</script>"]
    lines = b"".join(b"%s: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n" % name for name in names)
    header = (node.proc / "net/dev").read_bytes().split(b"\n")[:2]
    node.write("proc/net/dev", b"\n".join(header) + b"\n" + lines)
    one = service(**node.variables())
    one.start()
    one.wait_for_ticks(3)
    one.stop()
    text = subprocess.run(["zcat", one.path()], check=True, capture_output=True).stdout.decode("utf-8", errors="strict")
    events = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(e["args"]["hhash"], str) and len(e["args"]["hhash"]) == 16 for e in events)
    found = {e["name"] for e in events if e.get("cat") == "net"}
    assert found == {"net-" + name.decode("utf-8", errors="replace") for name in names}


def test_interfaces_and_cpus_and_disks_come_and_go(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=20, **node.variables())
    one.start()
    one.wait_for("net-eth0", 2)
    node.set_interfaces({"eth0": (1, 1), "veth1": (10**12, 1)})
    node.set_cpus(4, user=200)
    node.set_disks("   8       0 sda 1 0 8 1 1 0 8 1 0 1 2\n   8      16 sdb 999999 0 8 1 1 0 8 1 0 1 2\n")
    one.wait_for("net-veth1", 2)
    one.wait_for("sdb", 2)
    node.set_cpus(4, user=300)
    one.wait_for("cpu-3", 1)
    node.set_interfaces({"eth0": (1, 1)})
    node.set_cpus(1, user=400)
    node.set_disks("")
    seen = len(one.so_far().named("net-eth0"))
    one.wait_for("net-eth0", seen + 3)
    one.stop()
    trace = one.load()
    assert not any(args["bytes_recv"] for args in trace.args("net-veth1")), "what it had before we saw it is not ours"
    assert not any(args["reads_completed"] for args in trace.args("sdb"))
    last = trace.named("net-eth0")[-1]["ts"]
    assert trace.named("net-veth1")[-1]["ts"] < last and trace.named("sdb")[-1]["ts"] < last


@pytest.mark.plain_build  # a sanitizer keeps freed memory for a while, to find who still uses it
def test_churning_interfaces_leave_no_memory_behind(service, node):
    one = service(DFTRACER_TRACE_INTERVAL_MS=5, DFTRACER_COLLECTORS="network", **node.variables())

    def churn(first, turns):
        for turn in range(first, first + turns):
            node.set_interfaces({f"v{turn}x{i}": (1, 1) for i in range(20)})
            time.sleep(0.005)

    def resident_kb():
        status = Path(f"/proc/{one.pid()}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    one.start()
    churn(0, 50)
    before = resident_kb()
    churn(1000, 100)
    assert resident_kb() < before + 2048
    node.set_interfaces({"eth0": (1, 1)})
    one.wait_for("net-eth0", 2)


def test_a_meminfo_that_is_bound_over_the_kernels_is_what_counts(service, tmp_path):
    """lxcfs shows containers their own memory this way."""
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts over /proc/meminfo")
    fake = tmp_path / "meminfo"
    fake.write_text("MemTotal:        2097152 kB\nMemFree:         1000000 kB\nMemAvailable:    1500000 kB\n")
    one = service(command=["unshare", "-m", "sh", "-c", f'mount --bind {fake} /proc/meminfo && exec "$@"', "sh"])
    one.start()
    one.wait_for("memory")
    one.stop()
    assert {args["MemTotal"] for args in one.load().args("memory")} == {2097152}


@pytest.mark.parametrize("tree", sorted(path.name for path in RECORDED.iterdir() if (path / "proc/stat").is_file()))
def test_recorded_machines_of_all_ages_give_valid_traces(service, tmp_path, tree):
    copy = tmp_path / "tree"
    shutil.copytree(RECORDED / tree, copy, symlinks=True)
    one = service(DFTRACER_PROC_PATH=copy / "proc", DFTRACER_SYS_PATH=copy / "sys", DFTRACER_TRACE_INTERVAL_MS=20)
    one.start()
    one.wait_for_ticks(3)
    one.stop()
    assert one.load().is_ended


CGROUPS = {"cgroup-v1": "job_42", "cgroup-v2": "job_42", "cgroup-hybrid": "session-3.scope"}


@pytest.mark.parametrize("tree", CGROUPS)
def test_a_jobs_cgroup_has_the_same_keys_in_all_versions(service, tmp_path, tree):
    copy = tmp_path / "tree"
    shutil.copytree(RECORDED / tree, copy, symlinks=True)
    one = service(DFTRACER_PROC_PATH=copy / "proc", DFTRACER_SYS_PATH=copy / "sys", DFTRACER_CGROUP="4242", DFTRACER_LOG_LEVEL="INFO")
    one.start()
    name = f"cgroup-{CGROUPS[tree]}"
    one.wait_for(name, 3)
    one.stop()
    for args in one.load().args(name):
        assert {"cpu_usage_us", "cpu_user_us", "cpu_system_us", "memory_bytes", "io_bytes_read", "io_bytes_written", "tasks"} <= set(args), args
    assert "not measured: cgroup" not in one.errors()


def test_an_empty_proc_is_a_trace_without_counters(service, tmp_path):
    for name in ("proc", "sys"):
        (tmp_path / name).mkdir()
    one = service(DFTRACER_PROC_PATH=tmp_path / "proc", DFTRACER_SYS_PATH=tmp_path / "sys", DFTRACER_LOG_LEVEL="INFO")
    one.start()
    one.stop()
    trace = one.so_far()
    assert trace.is_ended and not trace.counters
    assert "not measured: cpu: " in one.errors()


def test_frequencies_are_asked_in_turn_and_only_when_wanted(service, node):
    for cpu in range(4):
        node.write(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", f"{1000000 + cpu}\n")
    without = service(**node.variables())
    without.start()
    without.wait_for("memory", 2)
    without.stop()
    assert not any(name.startswith("freq-") for name in without.load().names())
    one = service(DFTRACER_COLLECTORS="+frequency", DFTRACER_FREQUENCY_PER_TICK=1, **node.variables())
    one.start()
    one.wait_for("freq-cpu3", 2)
    one.stop()
    asked = [e for e in one.load().counters if e["name"].startswith("freq-")]
    assert len({e["ts"] for e in asked}) == len(asked), "one a tick"
    assert [e["name"] for e in asked[:5]] == ["freq-cpu0", "freq-cpu1", "freq-cpu2", "freq-cpu3", "freq-cpu0"]
    assert {e["args"]["frequency_khz"] for e in asked} == {1000000, 1000001, 1000002, 1000003}


def test_a_containers_view_of_the_hosts_file_systems(service, node, tmp_path):
    (tmp_path / "host" / "data").mkdir(parents=True)
    node.set_mounts("server:/x /data nfs rw 0 0\n")
    one = service(DFTRACER_ROOT_PATH=tmp_path / "host", **node.variables())
    one.start()
    one.wait_for("fs-/data", 2)
    one.stop()
    args = one.load().args("fs-/data")[0]
    assert args["label"] == "server:/x" and args["size_bytes"] == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
