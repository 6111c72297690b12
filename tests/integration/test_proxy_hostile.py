# SPDX-License-Identifier: BSD-3-Clause
"""proxy_v2 among clients and users that do everything wrong: they harm themselves, and nobody else."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

import pytest

from support.proxy import CICADA, COUNT_CLIENT, PROXY, Proxy, clean_environment
from support.waiting import wait_until

OTHER_UID = 54322


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def counting(proxy, job="good"):
    """A client that counts; what others do must not touch it."""
    client = proxy.connect()
    client.join(job)
    client.declare_counter("work")
    client.add("work", 1)
    proxy.wait_for_value(job, "work", 1)
    return client


def still_counts(proxy, client, job="good"):
    before = proxy.value(job, "work")
    client.add("work", 1)
    proxy.wait_for_value(job, "work", before + 1)


def own_metric(proxy, name):
    return float(re.search(rf"^{name} (\S+)$", proxy.metrics(), re.MULTILINE).group(1))


def declare_many(proxy, job, count, each=5000):
    """Clients that declare so many together."""
    clients = []
    for first in range(0, count, each):
        clients.append(proxy.connect())
        clients[-1].join(job)
        clients[-1].send(*({"Desc": {"name": f'many_total{{i="{i:06}"}}', "doc": "one of many",
                                     "ctype": {"Counter": {"ts": 0, "value": 0.0}}}} for i in range(first, first + each)))
    return clients


def http_connection(proxy, request):
    """A TCP connection that has sent this much."""
    host, port = proxy.beacon()["address"].split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(request)
    return connection


def test_slow_readers_and_half_requests_hold_up_nobody_and_not_the_end(proxy):
    proxy.start()
    good = counting(proxy)
    held = declare_many(proxy, "large", 30000)
    wait_until(lambda: proxy.metrics("large").count("\nmany_total{") == 30000, "many metrics")
    held += [http_connection(proxy, b"GET /metrics/?job=large HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(10)]
    held += [http_connection(proxy, b"GET /metrics HTTP/1.1\r\nHost: local") for _ in range(10)]
    held += [http_connection(proxy, b"POST /push HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")]
    held += [http_connection(proxy, b"") for _ in range(10)]
    held += [proxy.connect()]
    held[-1].send_bytes(b'{"JobDesc":{"jobid":"ha')
    assert proxy.metrics("large").count("\nmany_total{") == 30000
    still_counts(proxy, good)
    proxy.end()  # and not with the status of one that had to leave something behind
    for one in held:
        one.close()


def test_client_that_never_ends_its_message_is_cut_off(proxy):
    proxy.start()
    good, bad = counting(proxy), proxy.connect()
    before = own_metric(proxy, "process_resident_memory_bytes")
    piece, sent = b"[" + b" " * (1 << 20), 0
    with pytest.raises(OSError):
        while sent < 1 << 30:
            bad.send_bytes(piece)
            sent += len(piece)
    assert own_metric(proxy, "cicada_proxy_client_connections_cut_total") == 1
    assert own_metric(proxy, "process_resident_memory_bytes") < before + (64 << 20)
    assert "client cut off" in proxy.log()
    still_counts(proxy, good)


def test_job_with_too_many_metrics_keeps_those_that_it_has(proxy):
    proxy.start("--max-metrics-per-job", 1000, "--max-metrics", 4000)
    good = counting(proxy)
    bad = declare_many(proxy, "bad", 20000)[0]
    bad.declare_counter("late_total")
    bad.add('many_total{i="000000"}', 7)
    proxy.wait_for_value("bad", 'many_total{i="000000"}', 7)
    assert proxy.value("bad", "late_total") is None
    assert len(proxy.get("/job/?job=bad")["counters"]) <= 1000
    assert own_metric(proxy, "cicada_proxy_metrics_refused_total") >= 19000
    still_counts(proxy, good)


def test_client_with_too_many_names_is_cut_off(proxy):
    proxy.start()
    good = counting(proxy)
    bad = declare_many(proxy, "bad", 10001, each=10001)[0]
    assert bad.is_closed_by_peer()
    assert own_metric(proxy, "cicada_proxy_client_connections_cut_total") == 1
    still_counts(proxy, good)


def test_more_jobs_than_are_allowed_count_in_main(proxy):
    proxy.start("--max-jobs", 3)
    clients = []
    for number in range(5):
        client = proxy.connect()
        client.join(f"job-{number}")
        client.declare_counter("work")
        client.add("work", 1)
        clients.append(client)
    proxy.wait_for_value("main", "work", 5)
    assert len([desc for desc in proxy.get("/job/list") if desc["jobid"].startswith("job-")]) <= 3
    assert own_metric(proxy, "cicada_proxy_jobs_refused_total") >= 2


def test_clients_do_not_take_the_last_descriptors(proxy):
    """Those that are refused are counted, and HTTP answers."""
    with proxy.log_path.open("ab") as log:
        words = ["prlimit", "--nofile=256:256", PROXY, "-p", 0, "-t", proxy.prefix, "-u", proxy.socket_path, *proxy.options]
        proxy.process = subprocess.Popen(proxy.command(*words), stderr=log, env=clean_environment(), stdin=subprocess.DEVNULL)
    wait_until(lambda: "INFO ready:" in proxy.log(), "a proxy that is ready")
    good = counting(proxy)
    crowd = [proxy.connect() for _ in range(400)]
    wait_until(lambda: own_metric(proxy, "cicada_proxy_client_connections_refused_total") > 0, "a refusal")
    assert own_metric(proxy, "process_max_fds") == 256
    still_counts(proxy, good)
    for one in crowd:
        one.close()
    wait_until(lambda: own_metric(proxy, "cicada_proxy_client_connections") == 1, "the crowd to have gone")
    counting(proxy, "later").close()


@pytest.mark.parametrize("job", ["../../escape", "a/b", ".", "..", "with space", "two\nlines", "🦗" * 20, 'quote"\\', "%2e%2e%2f", "x" * 200])
def test_strange_job_ids_work_like_others(proxy, job):
    proxy.start()
    client = proxy.connect()
    client.join(job)
    client.declare_counter("work")
    client.add("work", 4)
    wait_until(lambda: proxy.value("main", "work") == 4, "the count")
    shown = [desc["jobid"] for desc in proxy.get("/job/list")]
    name = next((one for one in shown if one not in ("main",) and not one.startswith("Node: ")), None)
    if name is not None:  # an id that is no id at all counts in main alone
        assert proxy.value(name, "work") == 4
        assert "work 4\n" in proxy.metrics(name)
        client.close()
        proxy.wait_for_profile(name)
        assert proxy.get(f"/profiles/get?jobid={urllib.parse.quote(name, safe='')}")["desc"]["jobid"] == name
    proxy.end()
    inside = {path for path in proxy.directory.rglob("*") if path.is_file()}
    assert {path.parent for path in inside} <= {proxy.directory, proxy.prefix, proxy.prefix / "profiles"}


def test_every_byte_in_a_name_gives_a_text_that_can_be_read(proxy):
    proxy.start()
    client = proxy.connect()
    client.join("ugly")
    for code in [*range(1, 256), 0x2028, 0x1F997, 0xFFFD]:
        character = chr(code)
        for name in (f"plain{character}name", f'labelled{{a="{character}",{character}="b"}}', character):
            client.declare_counter(name)
    client.declare_counter("last")
    client.add("last", 1)
    proxy.wait_for_value("ugly", "last", 1)
    for headers in ({}, {"Accept": "application/openmetrics-text"}):
        text = proxy.metrics("ugly", **headers)
        lines = [line for line in text.split("\n") if line and not line.startswith("#")]
        for line in lines:
            assert re.fullmatch(r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? \S+', line), line
        assert len(lines) == len({line.split(" ")[0] for line in lines if "{" not in line}) + sum("{" in line for line in lines)
    done = subprocess.run(["promtool", "check", "metrics"], input=proxy.metrics("ugly"), capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert own_metric(proxy, "cicada_proxy_names_mapped_total") > 0


def test_huge_numbers_and_docs_that_are_no_text_spoil_no_answer(proxy):
    """Prometheus refuses a whole answer for one value that is no number, or one byte that is no UTF-8."""
    proxy.start()
    assert proxy.ask("/push?key=huge_total&doc=caf%e9")[0] == 200
    for _ in range(2):
        assert proxy.ask("/accumulate?key=huge_total&value=1.7e308")[0] == 200
    client = proxy.connect()
    client.join("huge")
    client.send({"Desc": {"name": "mean", "doc": "", "ctype": {"Gauge": {"min": 0, "max": 0, "hits": 0, "total": 0}}}},
                {"Value": {"name": "mean", "value": {"Gauge": {"min": 1, "max": 1, "hits": 1e-300, "total": 1e300}}}})
    wait_until(lambda: proxy.value("huge", "mean") is not None, "the gauge of the client")
    for text in (proxy.metrics(), proxy.metrics("huge")):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr
    proxy.kill()
    proxy.start()
    wait_until(lambda: (proxy.value("main", "huge_total") or 0) > 1e308, "the counter in the successor")


def test_nobody_passes_for_the_proxy_itself(proxy):
    """Their metrics have names of their own, and each family is there once."""
    proxy.start("--auth", "none")
    client = proxy.connect()
    client.join("liar")
    for name in ("process_cpu_seconds_total", "process-cpu_seconds_total", 'cicada_build_info{version="9"}', "cicada_proxy_ticks_total",
                 "proxy_connected_procs", "proxy_mpi_ranks", "job_mpi_ranks"):
        client.declare_counter(name)
        client.add(name, 1e6)
    proxy.wait_for_value("main", "exported_cicada_proxy_ticks_total", 1e6)
    text = proxy.metrics()
    types = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(types) == len(set(types))
    assert "exported_process_cpu_seconds_total 2000000\n" in text and 'exported_cicada_build_info{version="9"} 1000000\n' in text
    assert own_metric(proxy, "process_cpu_seconds_total") < 1e5
    assert own_metric(proxy, "process_open_fds") > 5
    assert own_metric(proxy, "proxy_connected_procs") == 1 and own_metric(proxy, "proxy_mpi_ranks") == 0
    assert own_metric(proxy, "exported_job_mpi_ranks") == 1e6
    status, _, said = proxy.ask("/push?key=process_open_fds")
    assert status == 400 and "process_open_fds" in said


def test_stopped_programs_and_a_stopped_proxy_lose_nothing(proxy):
    proxy.start()
    program = proxy.count(1000, "stopped", wait=True)
    proxy.wait_for_value("stopped", "work", 1000)
    program.send_signal(signal.SIGSTOP)
    proxy.process.send_signal(signal.SIGSTOP)
    other = proxy.count(10, "meanwhile")  # starts, counts and ends while nobody listens
    assert other.wait(timeout=30) == 0
    other.stdin.close()
    other.stdout.close()
    proxy.process.send_signal(signal.SIGCONT)
    proxy.wait_for_value("main", "work", 1010)
    assert proxy.value("stopped", "work") == 1000
    program.send_signal(signal.SIGCONT)
    program.stdin.close()
    assert program.wait(timeout=30) == 0
    program.stdout.close()
    proxy.wait_for_profile("stopped")


@pytest.mark.plain_build  # sanitizers need more address space
@pytest.mark.parametrize("limits", [["-f", "0"], ["-n", "5"], ["-v", "100000"], ["-l", "0"]], ids="".join)
def test_program_with_limits_runs_and_is_counted_where_it_can_be(proxy, limits):
    proxy.start()
    script = f'ulimit {" ".join(limits)} && exec "$0" 1000'
    words = proxy.command("sh", "-c", script, COUNT_CLIENT)
    done = subprocess.run(words, env=clean_environment(PROXY_PATH=proxy.socket_path, PROXY_JOB_ID="limited"), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    if limits[0] != "-f":  # no file may grow: nothing can be shared, and the program goes on all the same
        proxy.wait_for_value("main", "work", 1000)


def test_profile_that_cannot_be_written_is_written_later(proxy):
    proxy.start()
    good = counting(proxy)
    (proxy.prefix / "profiles").write_text("a file where the directory should be")
    bad = counting(proxy, "bad")
    bad.close()
    wait_until(lambda: "profile" in proxy.log(), "a word about the profile")
    still_counts(proxy, good)
    (proxy.prefix / "profiles").unlink()
    wait_until(lambda: (proxy.prefix / "profiles" / "bad.profile").exists(), "the profile that could not be written")


# Two users

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs programs as another user")


def as_other(*words):
    return ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups", *map(str, words)]


@pytest.fixture
def place():
    """A directory of the other user."""
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, OTHER_UID, OTHER_UID)
        yield Path(name)


@needs_root
def test_two_users_of_a_node_have_a_proxy_each(proxy, place):
    """And each user's commands find their own."""
    proxy.start()
    environment = clean_environment(HOME=place, PROXY_PATH=place / "socket")
    with (place / "log").open("wb") as log:
        other = subprocess.Popen(proxy.command(*as_other(PROXY, "-p", 0, "-t", place / "prefix", "--no-telemetry", "--listen", "127.0.0.1")),
                                 stderr=log, env=environment, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: b"INFO ready:" in (place / "log").read_bytes() or other.poll() is not None, "the other user's proxy")
        assert other.poll() is None, (place / "log").read_text()
        client = proxy.connect()
        client.join("mine")
        client.declare_counter("work")
        client.add("work", 1)
        proxy.wait_for_value("mine", "work", 1)
        found = subprocess.run(proxy.command(*as_other(CICADA, "jobs")), env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 0 and "mine" not in found.stdout, found.stderr
        # Neither may be fed by the other.
        refused = subprocess.run(proxy.command(*as_other("/usr/bin/python3", "-c", FEED, proxy.socket_path)), capture_output=True, text=True,
                                 check=False)
        assert "PermissionError" in refused.stderr
    finally:
        other.terminate()
        assert other.wait(timeout=30) == 0


FEED = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@needs_root
def test_socket_path_that_another_user_holds_is_refused(proxy):
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(proxy.socket_path))
        os.chown(proxy.socket_path, OTHER_UID, OTHER_UID)
        foreign.listen()
        assert str(proxy.socket_path) in proxy.refusal()
        assert os.stat(proxy.socket_path).st_uid == OTHER_UID, "it is still theirs"


def test_answers_are_json_that_others_can_read(proxy):
    """What is not finite, and what is in no locale's form, comes out of no endpoint."""
    proxy.start("--auth", "none", LC_ALL="de_DE.UTF-8")
    client = proxy.connect()
    client.join("numbers")
    client.declare_gauge("level")
    client.set("level", 1234567.25)
    client.send_bytes(b'{"Value":{"name":"level","value":{"Gauge":{"min":null,"max":1e999,"hits":1.0,"total":2.5}}}}\0')
    assert client.is_closed_by_peer()
    client.close()
    other = counting(proxy, "numbers")
    for path in ("/job", "/job/", "/job/?job=main", "/job/list", "/ranks", "/topo", "/period", "/profiles", "/profiles/percmd", "/alarms",
                 "/alarms/list", "/join/list"):
        text = proxy.ask(path)[2]
        assert json.loads(text, parse_constant=pytest.fail) is not None, path
    still_counts(proxy, other, "numbers")


def test_what_is_no_file_in_place_of_the_state_is_named_and_holds_nobody_up(proxy):
    directory = f"/dev/shm/cicada-{os.getuid()}"
    states = [f"{directory}/proxy-{socket.gethostname()}.state.{i}" for i in range(2)]
    subprocess.run(proxy.command("mkdir", "-m", "700", directory), check=True)
    subprocess.run(proxy.command("mkfifo", *states), check=True)
    proxy.start()
    client = counting(proxy)
    assert proxy.log().count("is a pipe") == 2
    wait_until(lambda: "is no file: remove it" in proxy.log(), "a word about what can't be written")
    still_counts(proxy, client)


def test_a_state_that_is_damaged_is_told_and_the_one_before_counts(proxy):
    directory = f"/dev/shm/cicada-{os.getuid()}"
    subprocess.run(proxy.command("mkdir", "-m", "700", directory), check=True)
    damage = f"head -c 5000 /dev/urandom >{directory}/proxy-{socket.gethostname()}.state.1"
    subprocess.run(proxy.command("sh", "-c", damage), check=True)
    proxy.start()
    assert re.search(r"WARN +the state in '\S+\.state\.1' is not whole", proxy.log()), proxy.log()


@pytest.mark.plain_build  # a sanitizer writes files of its own before main
def test_a_limit_of_file_size_is_told_by_name(proxy):
    """Not by SIGXFSZ, which ends a program without a word of its own."""
    words = [PROXY, "-p", 0, "-t", proxy.prefix, "-u", proxy.socket_path]
    done = subprocess.run(proxy.command("prlimit", "--fsize=0", *words), capture_output=True, text=True, timeout=30,
                          check=False, stdin=subprocess.DEVNULL, env=clean_environment())
    assert done.returncode == 1 and "File too large" in done.stderr
