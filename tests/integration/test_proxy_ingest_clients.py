# SPDX-License-Identifier: BSD-3-Clause
"""What clients of both protocols count is on the proxy, right, also when they misbehave or come again."""
import os

import pytest

from support.proxy_core import Place, value_of
from support.waiting import wait_until


@pytest.fixture
def place(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives the test a /dev/shm of its own")
    made = Place(tmp_path)
    yield made
    made.close()


def finish(program):
    program.stdin.close()
    assert program.wait(timeout=60) == 0
    program.stdout.close()


def run_json_job(place, job, value, **fields):
    client = place.connect()
    client.join(job, **fields)
    client.declare_counter("key")
    client.add("key", value)
    place.wait_for(lambda now: now.value(job, "key") == value, f"job {job}")
    client.close()


def test_segments_and_json_clients_count_into_one_job(place):
    place.start()
    program = place.count(1000, children=2, job="42", wait=True)
    client = place.connect()
    client.join("42")
    client.declare_counter("work")
    client.add("work", 7)
    dump = place.wait_for(lambda now: now.value("42", "work") == 3007, "both")
    assert dump.value("main", "work") == 3007
    assert dump.value(dump.node(), "work") == 3007
    assert dump.value("42", "level") == 7
    assert dump.value("42", 'sizes_bucket{le="10",of="calls"}') == 1
    assert dump.value("42", 'sizes_count{of="calls"}') == 1
    assert dump.value("42", "job_mpi_ranks") == 1
    assert dump.value("main", "proxy_mpi_ranks") == 1
    assert dump.stats["segments_found"] == 1  # by the socket and in the directory: once
    client.close()
    finish(program)
    dump = place.wait_for(lambda now: "42" not in now.jobs, "the end of the job")
    assert dump.value("main", "work") == 3007
    assert dump.value("main", "level") is None  # gauges leave with those that set them


def test_a_script_of_many_short_runs_is_one_job(place):
    place.start()
    for _ in range(5):
        finish(place.count(10, job="script"))
    wait_until(lambda: "script.profile" in place.profiles(), "the profile")
    counters = {c["name"]: value_of(c) for c in place.profile("script.profile")["counters"]}
    assert counters["work"] == 50
    assert counters["has_finished"] == 5
    assert [name for name in place.profiles() if name.startswith("script")] == ["script.profile"]


def test_a_job_id_that_is_used_again_overwrites_nothing(place):
    place.start()
    for run, value in enumerate((1, 2, 3)):
        run_json_job(place, "re", value, start_time=1700000000000 + run)
        place.wait_for(lambda now: "re" not in now.jobs, "the end of the run")
    wait_until(lambda: len(place.profiles()) == 3, "three profiles")
    assert place.profiles() == ["re.2.profile", "re.3.profile", "re.profile"]
    assert "there was a job with this id before" in place.log()
    for name, value in (("re", 1), ("re.2", 2), ("re.3", 3)):
        assert value_of(place.profile(f"{name}.profile")["counters"][0]) == value


def test_hostile_job_ids_stay_in_their_directory(place):
    place.start()
    for job in ("../../escape", "a/b", "..", "x\ny", "\U0001f980", "k" * 1000):
        client = place.connect()
        client.join(job)
        client.declare_counter("key")
        client.add("key", 1)
        place.wait_for(lambda now, name=job: now.value(name, "key") == 1, repr(job))
        client.close()
    place.wait_for(lambda now: len(now.jobs) == 2, "the end of all jobs")
    wait_until(lambda: len(place.profiles()) == 6, "six profiles")
    assert sorted(path.name for path in place.prefix.iterdir()) == ["profiles"]


GARBAGE = {"http": b"GET / HTTP/1.1\r\n\r\n", "no end": b"{" * 200000, "empty": b"{}\0", "half": b'{"Value":\0',
           "greeting": b"ckihello" + b"\0" * 8}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_client_that_sends_garbage_is_cut_off_and_others_are_unharmed(place, data):
    place.start()
    good = place.connect()
    good.declare_counter("good")
    good.add("good", 1)
    bad = place.connect()
    try:
        bad.send_bytes(data)
    except (BrokenPipeError, ConnectionResetError):
        pass  # cut off before it had sent all
    assert bad.is_closed_by_peer()
    assert "client cut off: " in place.log()
    good.add("good", 1)
    dump = place.wait_for(lambda now: now.value("main", "good") == 2, "the other client")
    assert dump.stats["connections_cut"] == 1
    good.close()
    bad.close()


def test_broken_profiles_are_set_aside_and_the_start_goes_on(place):
    directory = place.prefix / "profiles"
    directory.mkdir(parents=True)
    (directory / "cut.profile").write_text('{"desc":{"jobid":"cut"')
    (directory / "old.profile").write_text('{"desc":{"jobid":"old","command":"x","size":1,"nodelist":"","partition":"",'
                                           '"cluster":"","run_dir":"","start_time":1,"end_time":2},"counters":[]}')
    place.start()
    wait_until(lambda: place.profiles() == ["cut.profile.broken", "old.profile"], "the broken one to be set aside")
    place.wait_for(lambda now: now.stats["profiles"] == 1, "the good one to be read")
    assert "cut.profile" in place.log()


def test_pids_of_launchers_are_told_apart(place):
    """Two launchers with one pid, as after a reboot or on two nodes, are two jobs; while one lives its id is short."""
    place.start()
    launcher = str(os.getpid())
    program = place.count(10, wait=True, METRIC_PROXY_LAUNCHER_PPID=launcher)
    dump = place.wait_for(lambda now: now.value(launcher, "work") == 10, "the job")
    assert dump.jobs[launcher]["key"].startswith(f"{launcher}@")
    client = place.connect()
    client.join(launcher)  # a client of the existing library: its ancestors tell
    dump = place.wait_for(lambda now: now.jobs[launcher]["contributors_seen"] == 2, "the second client")
    assert len(dump.jobs) == 3
    client.close()
    finish(program)


def test_the_node_and_each_job_have_telemetry(place):
    place.start("--telemetry")
    place.wait_for(lambda now: now.value("main", 'cicada_node_cpu_seconds_total{mode="user"}'), "time of the CPUs")
    program = place.count(10, job="tele", wait=True)
    cpu = 'cicada_node_cpu_seconds_total{mode="user"}'
    dump = place.wait_for(lambda now: now.value("tele", cpu), "telemetry of the job")
    assert dump.value("tele", cpu) < dump.value("main", cpu)
    assert dump.value("main", "proxy_memory_total_bytes") > 0
    assert dump.value("main", 'cicada_node_collector_success{collector="cpu"}') == 1
    assert dump.value("tele", 'cicada_node_collector_success{collector="cpu"}') is None
    finish(program)
    place.end()
    place.start("--telemetry")
    before = dump.value("main", cpu)
    assert place.dump().value("main", cpu) >= before  # goes on where it was


def test_a_profile_that_cannot_be_written_is_tried_again(place):
    place.prefix.write_text("a file where the directory should be")
    place.start()
    run_json_job(place, "late", 5)
    wait_until(lambda: "job=late profile: " in place.log(), "the complaint")
    place.prefix.unlink()
    wait_until(lambda: "late.profile" in place.profiles(), "the profile")
    place.wait_for(lambda now: "late" not in now.jobs, "the end of the job")
