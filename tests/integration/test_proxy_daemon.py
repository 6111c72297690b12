# SPDX-License-Identifier: BSD-3-Clause
"""proxy_v2 as a process: how it starts, what it refuses, how it ends, what a successor knows."""
import os
import random
import re
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from support.proxy import PROXY, Proxy, clean_environment, http_over_unix
from support.waiting import rounds, wait_until


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def test_it_says_where_it_is(proxy):
    proxy.start()
    beacon = proxy.beacon()
    assert int(beacon["pid"]) > 0 and re.fullmatch(r"127\.0\.0\.1:[0-9]+", beacon["address"])
    assert f"port={beacon['address'].split(':')[1]} " in proxy.log()
    assert stat.S_IMODE(os.stat(proxy.socket_path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(beacon["token_file"]).st_mode) == 0o600
    assert (proxy.prefix / "root.url").read_text() == f"{socket.gethostname()}:{beacon['address'].split(':')[1]}\n"


def test_it_leaves_nothing_behind(proxy):
    proxy.start().end()
    assert sorted(path.name for path in proxy.directory.iterdir()) == ["prefix", "proxy.log"]


def test_readiness_and_the_end_are_told_to_systemd(proxy):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(proxy.directory / "notify"))
        manager.settimeout(30)
        proxy.start(NOTIFY_SOCKET=proxy.directory / "notify")
        assert "READY=1" in manager.recv(4096).decode()
        assert proxy.ask("/healthz")[0] == 200
        proxy.end()
        assert "STOPPING=1" in manager.recv(4096).decode()


def test_last_tick_of_all_is_one_that_would_tell_what_ticks_cost(proxy):
    proxy.start("--instrumentation", 1, "-S", 60000)
    wait_until(lambda: "cpu_ms_per_tick=" in proxy.log(), "what the first tick cost")
    time.sleep(1.1)  # from now on it is due again, at the next tick, which is that of the end
    proxy.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_profiles_of_running_jobs_are_saved_at_the_end(proxy, number):
    proxy.start()
    client = proxy.connect()
    client.join("running")
    client.declare_counter("work")
    client.add("work", 5)
    proxy.wait_for_value("running", "work", 5)
    proxy.end(number)
    assert (proxy.prefix / "profiles" / "running.profile").exists()


def test_second_proxy_of_a_user_harms_nothing_of_the_first(proxy):
    proxy.start()
    client = proxy.connect()
    client.join("mine")
    client.declare_counter("work")
    client.add("work", 1)
    proxy.wait_for_value("mine", "work", 1)
    said = proxy.refusal()
    assert "a proxy serves" in said and proxy.beacon()["address"] in said and "--unix" in said
    client.add("work", 1)
    proxy.wait_for_value("mine", "work", 2)


def test_second_proxy_with_another_socket_shares_no_state(proxy):
    proxy.start()
    said = proxy.refusal("-u", proxy.directory / "other")
    assert "a metric proxy of this user runs on this node already" in said
    assert not (proxy.directory / "other").exists()
    assert proxy.get("/period") == {"operation": "50", "success": True}


def test_port_that_is_taken(proxy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = proxy.refusal("-p", port)
        assert f"port {port} is in use by a program of this user" in said and "--port" in said
        assert not proxy.socket_path.exists(), "it holds no socket that programs would trust"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs a program as another user")
def test_port_of_another_user_is_passed_over(proxy):
    """The next free one is taken, and said in the log and beside the socket."""
    program = ("import socket, sys; taken = socket.create_server(('127.0.0.1', 1337)); print('taken', flush=True); "
               "sys.stdin.read()")
    with subprocess.Popen(["setpriv", "--reuid=54321", "--clear-groups", "/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as other:
        if other.stdout.readline() != b"taken\n":
            pytest.fail(other.stderr.read().decode())
        with proxy.log_path.open("ab") as log:
            words = [PROXY, "-t", proxy.prefix, "-u", proxy.socket_path, *proxy.options]
            proxy.process = subprocess.Popen(proxy.command(*words), stderr=log, env=clean_environment())
        wait_until(lambda: "INFO ready:" in proxy.log(), "a proxy that is ready")
        assert "port 1337 is another user's" in proxy.log()
        assert int(proxy.beacon()["address"].split(":")[1]) > 1337
        other.stdin.close()


@pytest.mark.parametrize("options, words", [
    (["-S", "abc"], ["--sampling-period 'abc'", "10 to 3600000"]),
    (["-S", "1"], ["--sampling-period '1'"]),
    (["-p", "65536"], ["--port '65536'", "0 to 65535"]),
    (["--names", "both,legacy"], ["--names", "legacy|cicada|both"]),
    (["--auth", "perhaps"], ["--auth 'perhaps'", "changes|all|none"]),
    (["-u", "/" + "x" * 200], ["107"]),
    (["-t", "/proc/nothing"], ["--target-prefix '/proc/nothing'"]),
    (["-t", ""], ["--target-prefix ''", "empty"]),
    (["--nonsense"], ["--nonsense", "--help"]),
    (["-S"], ["a value is missing", "-S"]),
    (["more"], ["'more'", "one argument too many"]),
    (["--listen", "nowhere"], ["nowhere"]),
])
def test_bad_options_are_named(proxy, options, words):
    said = proxy.refusal(*options)
    for word in words:
        assert word in said, said


def test_socket_that_a_dead_proxy_left_is_replaced(proxy):
    proxy.start().kill()
    assert proxy.socket_path.exists()
    proxy.start()
    client = proxy.connect()
    client.join("after")
    client.declare_counter("work")
    client.add("work", 3)
    proxy.wait_for_value("after", "work", 3)


def test_file_in_the_place_of_the_socket_is_not_touched(proxy):
    proxy.socket_path.write_text("mine")
    assert str(proxy.socket_path) in proxy.refusal()
    assert proxy.socket_path.read_text() == "mine"


def test_client_that_sends_garbage_is_cut_off_and_others_go_on(proxy):
    proxy.start()
    good, bad = proxy.connect(), proxy.connect()
    good.join("good")
    good.declare_counter("work")
    bad.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert bad.is_closed_by_peer()
    good.add("work", 2)
    proxy.wait_for_value("good", "work", 2)
    assert "client cut off" in proxy.log()
    assert "cicada_proxy_client_connections_cut_total 1\n" in proxy.metrics()


def test_changes_are_for_those_who_may(proxy):
    proxy.start()
    token = Path(proxy.beacon()["token_file"]).read_text().strip()
    bearer = {"Authorization": f"Bearer {token}"}
    status, _, text = proxy.ask("/push?key=a_total&doc=x", headers={"Origin": "http://evil.example", **bearer})
    assert status == 403 and "success\":false" in text
    status, _, _ = proxy.ask("/push?key=a_total&doc=x", headers={"Host": "evil.example", **bearer})
    assert status == 403
    status, _, _ = proxy.ask("/push?key=a_total&doc=x", headers=bearer)
    assert status == 200
    first, _ = http_over_unix(proxy.beacon()["http_socket"], "/set?key=a_total&value=4")
    assert first == "HTTP/1.1 200 OK"
    assert proxy.value("main", "a_total") == 4
    status, _, _ = proxy.ask("/accumulate", body={"key": "a_total", "value": 2.5}, headers=bearer)
    assert status == 200 and proxy.value("main", "a_total") == 6.5
    assert "cicada_proxy_http_forbidden_total 2\n" in proxy.metrics()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: asks as another user")
def test_another_user_may_read_and_not_change(proxy):
    proxy.start()

    def ask_as_other(path):
        done = subprocess.run(["setpriv", "--reuid=54321", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                               proxy.url(path)], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert ask_as_other("/metrics") == 200
    assert ask_as_other("/push?key=a_total") == 403


def test_reading_can_be_closed_too(proxy):
    proxy.start("--auth", "all")
    token = Path(proxy.beacon()["token_file"]).read_text().strip()
    assert proxy.ask("/job/list", headers={"Origin": "http://evil.example"})[0] == 403
    assert proxy.ask("/job/list", headers={"Authorization": f"Bearer {token}"})[0] == 200


@pytest.mark.parametrize("path, words", [
    ("/set?key=nobody&value=1", "nobody"), ("/set?key=a_total", "value"), ("/set?value=1", "key"),
    ("/set?key=a_total&value=nan", "value"), ("/accumulate?key=a_total&value=1e999", "value"), ("/job/?job=nix", "'nix'"),
    ("/metrics/?job=nix", "'nix'"), ("/profiles/get?jobid=nix", "'nix'"), ("/profiles/get?jobid=../../etc/passwd", "passwd"),
])
def test_bad_requests_say_what_is_wrong(proxy, path, words):
    proxy.start("--auth", "none")
    status, headers, text = proxy.ask(path)
    assert status == 400 and headers["Content-Type"] == "application/json" and words in text and '"success":false' in text


def test_what_is_not_there_yet_says_so(proxy):
    proxy.start()
    assert proxy.ask("/model/get?jobid=1")[0] == 501
    assert proxy.ask("/nothing")[0] == 404
    assert proxy.ask("/job/list", body={})[0] == 405


def test_broken_profile_is_set_aside_and_the_rest_starts(proxy):
    profiles = proxy.prefix / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "cut.profile").write_text('{"desc":{"jobid":"cut"')
    proxy.start()
    wait_until(lambda: (profiles / "cut.profile.broken").exists(), "the broken file to be set aside")
    assert "cut.profile" in proxy.log()
    assert proxy.get("/profiles") == []


def test_successor_of_a_killed_proxy_knows_all(proxy):
    """Processes count, end and start while proxies are killed at random; the job's total is exact."""
    seed = int(os.environ.get("CICADA_TEST_SEED", time.time_ns() % 2**32))
    print(f"CICADA_TEST_SEED={seed}")
    dice = random.Random(seed)
    proxy.start()
    waiting, total = [], 0
    for _ in range(rounds(6, 50)):
        for _ in range(3):
            times = dice.randrange(1, 1000)
            waiting.append(proxy.count(times, "job", wait=True))
            total += times
        for program in waiting[:2]:
            program.stdin.close()
        time.sleep(dice.uniform(0, 0.1))
        proxy.kill()
        while len(waiting) > 2:
            program = waiting.pop(0)
            program.stdin.close() if not program.stdin.closed else None
            program.wait(timeout=30)
            program.stdout.close()
        proxy.start()
        proxy.wait_for_value("job", "work", total)
    for program in waiting:
        program.stdin.close()
        program.wait(timeout=30)
        program.stdout.close()
    proxy.wait_for_profile("job")
    counters = {one["name"]: one["ctype"] for one in proxy.get("/profiles/get?jobid=job")["counters"]}
    assert counters["work"]["Counter"]["value"] == total


@pytest.mark.plain_build  # sanitizers keep freed memory
@pytest.mark.timeout(3600)
def test_many_jobs_one_after_the_other_leave_no_memory_behind(proxy):
    proxy.start("--linger", "1", "-t", "/dev/shm/prefix")  # no disk whose speed would be measured

    def resident_bytes():
        return float(re.search(r"^process_resident_memory_bytes (\S+)$", proxy.metrics(), re.MULTILINE).group(1))

    def run_jobs(count, first):
        for number in range(first, first + count):
            client = proxy.connect()
            client.join(f"job-{number}", command="")
            client.declare_counter("work")
            client.add("work", 1)
            client.close()
        wait_until(lambda: proxy.value("main", "work") == first + count, "all that was counted", timeout_s=30 + count / 50)
        wait_until(lambda: not proxy.get("/ranks")["jobs"], "all jobs to end", timeout_s=30 + count / 50)

    run_jobs(300, 0)
    before = resident_bytes()
    count = rounds(700, 100000)
    run_jobs(count, 300)
    # The index of profiles grows with them; a job itself, with its registry, must not stay.
    assert resident_bytes() - before < 8e6 + count * 1000


def test_telemetry_has_the_labels_of_the_existing_proxy(proxy):
    proxy.options.remove("--no-telemetry")
    proxy.start("--names", "legacy")
    wait_until(lambda: "proxy_network_receive_bytes_total" in proxy.metrics() and "proxy_cpu_usage_percent" in proxy.metrics(),
               "telemetry of two samples")
    text = proxy.metrics()
    labels = {"proxy_scrape_total": ["hostname", "kernel", "os", "osversion"], "proxy_cpu_usage_percent": ["model", "name", "vendor"],
              "proxy_network_receive_bytes_total": ["interface"], "proxy_cpu_total": [], "proxy_memory_total_bytes": []}
    labels |= {f"proxy_disk_{what}": ["device", "fs", "kind", "mountpoint"]
               for what in ("size_bytes", "free_size_bytes", "used_size_bytes", "usage_percent")}
    for family, wanted in labels.items():
        lines = re.findall(rf"^{family}(?:\{{(.*)\}})? \S+$", text, re.MULTILINE)
        assert lines or family.startswith("proxy_disk"), family  # a container may have no file system of its own
        for line in lines:
            assert re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', line) == wanted, line
            assert 'fs=""' not in line
