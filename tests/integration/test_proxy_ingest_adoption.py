# SPDX-License-Identifier: BSD-3-Clause
"""The proxy is killed at random moments under load: its successors count everything once."""
import os
import platform
import random
import time

import pytest

from support.proxy_core import Place
from support.waiting import rounds, wait_until

KILLS = rounds(10, 50)
PROGRAMS_PER_ROUND = 12
COUNT = 1000
SYS_INOTIFY_INIT1 = 294  # x86-64: the proxy's first look into the directory of segments
FOLD_STOPS = 130  # from there to the unlinking of the last of three segments, and some more


@pytest.fixture
def place(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives the test a /dev/shm of its own")
    made = Place(tmp_path)
    yield made
    made.close()


def seeded():
    seed = int(os.environ.get("CICADA_TEST_SEED", time.time_ns() % 2**32))
    print(f"seed {seed}")
    return random.Random(seed)


def end_all(programs):
    for program in programs:
        program.stdin.close()
    for program in programs:
        assert program.wait(timeout=60) == 0
        program.stdout.close()


@pytest.mark.timeout(900)
def test_totals_are_exact_after_many_kills_also_in_the_middle_of_folding(place):
    """Many segments end at once, so that a kill soon after that is in the middle of reading, folding or unlinking."""
    moments = seeded()
    counted = 0
    place.start()
    for _ in range(KILLS):
        programs = [place.count(COUNT, children=1, job="job", wait=True) for _ in range(PROGRAMS_PER_ROUND)]
        counted += 2 * COUNT * PROGRAMS_PER_ROUND
        end_all(programs)
        time.sleep(moments.uniform(0, 0.06))  # the moment is what is random here: a tick comes within it or not
        place.kill()
        if moments.random() < 0.5:
            end_all([place.count(COUNT, job="job")])  # counts and ends while no proxy runs
            counted += COUNT
        place.start()
    dump = place.wait_for(lambda now: now.stats["segments"] == 0, "all segments to be folded")
    assert dump.value("main", "work") == counted
    assert dump.value(dump.node(), "work") == counted
    assert wait_until(lambda: not place.segments(), "the segments' files to be gone")
    place.kill()
    place.start()
    dump = place.dump()
    assert dump.value("main", "work") == counted


@pytest.mark.timeout(900)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the numbers of system calls of x86-64 only")
def test_a_kill_at_any_system_call_of_a_fold_counts_once(place):
    """Three segments wait for a proxy that finds, reads, folds and unlinks them, and dies somewhere in between."""
    counted = 0
    for stop in range(1, FOLD_STOPS, rounds(2, 1)):
        end_all([place.count(COUNT, job="job", wait=True) for _ in range(3)])
        counted += 3 * COUNT
        assert place.run_until_stop(SYS_INOTIFY_INIT1, stop), place.log()
        place.start()
        dump = place.wait_for(lambda now: now.stats["segments"] == 0, "all segments to be folded")
        assert dump.value("main", "work") == counted, f"killed at stop {stop}"
        assert dump.value(dump.node(), "work") == counted, f"killed at stop {stop}"
        place.kill()


def test_a_program_goes_on_counting_over_the_death_of_the_proxy(place):
    place.start()
    program = place.count(COUNT, job="42", wait=True)
    place.wait_for(lambda now: now.value("42", "work") == COUNT, "what the program counted")
    place.kill()
    place.start()
    dump = place.dump()
    assert dump.value("42", "work") == COUNT
    assert dump.jobs["42"]["ranks"] == 1
    end_all([program])
    place.wait_for(lambda now: "42" not in now.jobs, "the end of the job")
    assert place.dump().value("main", "work") == COUNT
    wait_until(lambda: "42.profile" in place.profiles(), "the profile")
    profile = place.profile("42.profile")
    assert {c["name"]: c for c in profile["counters"]}["work"]["ctype"]["Counter"]["value"] == COUNT
    assert profile["cicada"]["is_complete"]


def test_what_json_clients_counted_is_there_after_a_kill(place):
    place.start()
    client = place.connect()
    client.join("7")
    client.declare_counter("key")
    client.add("key", 3)
    place.wait_for(lambda now: now.value("7", "key") == 3, "the client's counter")
    writes = place.dump().stats["state_writes"]
    place.wait_for(lambda now: now.stats["state_writes"] >= writes, "the state to be written")
    place.kill()
    place.start()
    assert place.dump().value("7", "key") == 3
    assert place.dump().value("main", "key") == 3
    client.close()


def test_an_orphan_that_begins_to_count_late_is_counted(place):
    """A daemon's child counts for the first time after its parent has ended: the segment is still its own."""
    place.start()
    program = place.count(COUNT, job="d", LATE_CHILD="1")
    program.stdin.close()
    assert program.wait(timeout=60) == 0
    place.wait_for(lambda now: now.value("main", "late") == 1, "what the orphan counted")
    program.stdout.close()


def test_a_second_proxy_of_the_same_user_is_refused(place):
    place.start()
    first = place.proxy
    with pytest.raises(AssertionError):
        place.start()
    place.proxy.wait(timeout=30)
    assert "runs on this node already" in place.log()
    place.proxy = first
    assert place.dump().stats["ticks"] > 0


def test_sigterm_saves_running_jobs_and_a_successor_goes_on(place):
    place.start()
    program = place.count(COUNT, job="run", wait=True)
    place.wait_for(lambda now: now.value("run", "work") == COUNT, "what the program counted")
    place.end()
    assert place.profile("run.profile")["desc"]["end_time"] == 0
    place.start()
    end_all([program])
    wait_until(lambda: place.profile("run.profile")["desc"]["end_time"] != 0, "the final profile")
    assert [name for name in place.profiles() if name.startswith("run")] == ["run.profile"]
