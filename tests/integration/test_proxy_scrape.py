# SPDX-License-Identifier: BSD-3-Clause
"""The proxy scrapes exporters and other proxies: right values, whatever they do."""
import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest

from support.peers import Peer
from support.proxy import Proxy
from support.waiting import wait_until

PERIOD = 50


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path / "proxy")
    yield one
    one.close()


@pytest.fixture(autouse=True)
def directory(tmp_path):
    (tmp_path / "proxy").mkdir()
    (tmp_path / "child").mkdir()


@pytest.fixture
def child(tmp_path):
    one = Proxy(tmp_path / "child")
    yield one
    one.close()


@pytest.fixture
def peer():
    made = []

    def make(text=""):
        made.append(Peer(text))
        return made[-1]

    yield make
    for one in made:
        one.close()


def targets(proxy):
    return {one["target_url"].split("//")[1].split("/")[0]: one for one in proxy.get("/join/list")}


def wait_up(proxy, address, is_up=True):
    return wait_until(lambda: targets(proxy).get(address, {}).get("up") is is_up and targets(proxy)[address],
                      f"{address} to be {'up' if is_up else 'down'}: {targets(proxy)}")


def operation(proxy, path):
    status, _, text = proxy.ask(path)
    return status, json.loads(text)["operation"]


def node_job(proxy):
    return next(job["jobid"] for job in proxy.get("/job/list") if job["jobid"].startswith("Node: "))


def wait_scrape(proxy, metric, peer, condition):
    """What is told of a target comes with the next tick."""
    name = f'cicada_scrape_{metric}{{target="http://{peer.address}"}}'
    wait_until(lambda: condition(proxy.value("main", name)), f"{name}, now {proxy.value('main', name)}")


def test_counters_of_a_target_that_begins_anew_count_on(proxy, peer):
    one = peer("# TYPE work_total counter\nwork_total 10\n# TYPE level gauge\nlevel 5\n")
    proxy.start("-s", f"{one.address}@{PERIOD}")
    proxy.wait_for_value("main", "work_total", 10)
    proxy.wait_for_value(node_job(proxy), "work_total", 10)
    for told, shown in ((25, 25), (3, 28), (8, 33)):
        one.text = f"# TYPE work_total counter\nwork_total {told}\n"
        proxy.wait_for_value("main", "work_total", shown)
    proxy.wait_for_value("main", "level", None)  # it is told no more
    one.stop()
    wait_up(proxy, one.address, False)
    assert proxy.value("main", "work_total") == 33
    one.text = "# TYPE work_total counter\nwork_total 1\n"
    one.start()
    proxy.wait_for_value("main", "work_total", 34)
    wait_scrape(proxy, "up", one, lambda up: up == 1)
    wait_scrape(proxy, "errors_total", one, lambda errors: errors >= 1)
    assert proxy.log().count("answers again") == 1


@pytest.mark.parametrize("end", ["end", "kill"])
def test_a_successor_knows_what_a_target_had_counted_before_it_began_anew(proxy, peer, end):
    one = peer("# TYPE work_total counter\nwork_total 25\n")
    proxy.start("-s", f"{one.address}@{PERIOD}")
    proxy.wait_for_value("main", "work_total", 25)
    one.text = "# TYPE work_total counter\nwork_total 3\n"
    proxy.wait_for_value("main", "work_total", 28)
    # The state is written in the tick that shows it.
    getattr(proxy, end)()
    proxy.start("-s", f"{one.address}@{PERIOD}")
    proxy.wait_for_value("main", "work_total", 28)
    one.text = "# TYPE work_total counter\nwork_total 4\n"
    proxy.wait_for_value("main", "work_total", 29)
    proxy.wait_for_value(node_job(proxy), "work_total", 29)


def test_a_target_that_is_joined_twice_counts_once(proxy, peer):
    one = peer("# TYPE work_total counter\nwork_total 10\n")
    proxy.start()
    assert operation(proxy, f"/join?to={one.address}&period={PERIOD}") == (200, "joined")
    proxy.wait_for_value("main", "work_total", 10)
    for form in (one.address, f"http://{one.address}", f"HTTP://{one.address}/metrics", f"localhost:{one.port}"):
        assert operation(proxy, f"/join?to={urllib.parse.quote(form)}&period=60")[0] == 200
    assert [t["period"] for t in proxy.get("/join/list")] == [60]
    one.text = "# TYPE work_total counter\nwork_total 11\n"
    proxy.wait_for_value("main", "work_total", 11)
    # Disconnected and joined again, under load: what it had counted is not counted again.
    for told in (20, 30, 40):
        assert operation(proxy, f"/disconnect?target=http://{one.address}/metrics")[0] == 200
        assert proxy.get("/join/list") == []
        one.text = f"# TYPE work_total counter\nwork_total {told}\n"
        assert operation(proxy, f"/join/multiple?to={one.address}&period={PERIOD}")[0] == 200
        proxy.wait_for_value("main", "work_total", told)
    assert operation(proxy, "/disconnect?target=127.0.0.1:1")[0] == 400


def test_another_name_of_a_target_is_told(proxy, peer):
    one = peer("# TYPE work_total counter\nwork_total 10\n")
    proxy.start()
    host = socket.gethostname()
    try:
        if socket.gethostbyname(host) != "127.0.0.1" and socket.gethostbyname(host)[:4] != "127.":
            pytest.skip(f"the name {host} is no loopback address")
    except OSError:
        pytest.skip(f"the name {host} has no address")
    operation(proxy, f"/join?to={socket.gethostbyname(host)}:{one.port}&period={PERIOD}")
    operation(proxy, f"/join?to={host}:{one.port}&period={PERIOD}")
    wait_until(lambda: any("the same as" in t["error"] for t in proxy.get("/join/list")), "the second to be refused")


def test_what_cannot_be_scraped_is_refused(proxy):
    proxy.start()
    port = proxy.beacon()["address"].split(":")[1]
    for form, words in ((f"127.0.0.1:{port}", "this proxy itself"), (f"localhost:{port}", "this proxy itself"),
                        ("file:///etc/passwd", "http"), ("node7", "port"), ("a b:1", ""), ("", "host")):
        status, why = operation(proxy, f"/join?to={urllib.parse.quote(form)}")
        assert status == 400 and words in why, form
    assert operation(proxy, "/join?to=127.0.0.1:1&period=x")[0] == 400
    assert operation(proxy, "/join?to=127.0.0.1:1&period=1")[0] == 400
    assert operation(proxy, "/join")[0] == 400
    status, _, _ = proxy.ask("/join?to=127.0.0.1:1", headers={"Origin": "http://elsewhere"})
    assert status == 403
    assert proxy.get("/join/list") == []
    proxy.end()
    assert "-s 'node7'" in proxy.refusal("-s", "node7")


def test_a_peer_that_hangs_freezes_nobody(proxy, peer):
    hung, good = peer(), peer("# TYPE work_total counter\nwork_total 1\n")
    hung.hang = True
    proxy.start("-s", f"{hung.address},{good.address}@{PERIOD}")
    wait_until(lambda: hung.asked, "the hung peer to be asked")
    for told in range(2, 12):
        good.text = f"# TYPE work_total counter\nwork_total {told}\n"
        proxy.wait_for_value("main", "work_total", told)
    wait_until(lambda: targets(proxy)[hung.address]["error"], "the deadline")
    wait_scrape(proxy, "up", hung, lambda up: up == 0)
    wait_scrape(proxy, "up", good, lambda up: up == 1)
    assert len(hung.asked) < 20  # and less and less often
    proxy.end()


@pytest.mark.parametrize("answer", ["status", "rubbish", "half", "huge"])
def test_a_bad_answer_spoils_itself_alone(proxy, peer, answer):
    bad, good = peer("# TYPE bad_total counter\nbad_total 1\n"), peer("# TYPE work_total counter\nwork_total 1\n")
    proxy.start("-s", f"{bad.address},{good.address}@{PERIOD}")
    proxy.wait_for_value("main", "bad_total", 1)
    if answer == "status":
        bad.status = 500
    elif answer == "rubbish":
        bad.text = "<html>\n" * 3 + "good_total 7\n" + "\0\n" + 'x{y="' + "z" * 100000 + '"} 1\n'
    elif answer == "half":
        bad.text = "# TYPE good_total counter\ngood_total 7\nbad_tot"
    else:
        bad.text = "x 1\n" * (9 << 20)
    if answer in ("status", "huge"):
        wait_up(proxy, bad.address, False)
    else:
        proxy.wait_for_value("main", "good_total", 7)
        wait_scrape(proxy, "bad_lines_total", bad, lambda lines: lines >= 1)
        assert proxy.log().count("make no sense") == 1
    assert proxy.value("main", "bad_total") == 1
    good.text = "# TYPE work_total counter\nwork_total 2\n"
    proxy.wait_for_value("main", "work_total", 2)


def test_an_exporter_cannot_pass_for_the_proxy(proxy, peer):
    one = peer("cicada_build_info 7\nprocess_cpu_seconds_total 9\n"
               "# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n")
    # Its page for every path, which names a proxy: haproxy_exporter has such a one.
    one.pages = {"/is_admire_proxy.html": "<h1>haproxy exporter</h1>", "/job": "<h1>haproxy exporter</h1>"}
    proxy.start("-s", f"{one.address}@{PERIOD}")
    proxy.wait_for_value("main", "exported_process_cpu_seconds_total", 9)
    assert proxy.value("main", 'h_bucket{le="+Inf"}') == 2
    assert proxy.value("main", "exported_cicada_build_info") == 7
    assert targets(proxy)[one.address]["ttype"] == "Prometheus"


def test_a_proxy_is_scraped_whole(proxy, child):
    child.start()
    address = child.beacon()["address"]
    first = child.count(100, "42", wait=True)
    proxy.start("-s", f"{address}@{PERIOD}")
    proxy.wait_for_value("42", "work", 100)
    proxy.wait_for_value("main", "work", 100)
    assert proxy.value(node_job(proxy), "work") is None  # it was counted on the child's node
    assert targets(proxy)[address]["ttype"] == "Proxy"
    own = proxy.count(10, "42", wait=True)
    proxy.wait_for_value("42", "work", 110)
    proxy.wait_for_value("main", "work", 110)
    assert proxy.value("42", "job_mpi_ranks") == 2
    for program in (first, own):
        program.stdin.close()
        assert program.wait(timeout=30) == 0
        program.stdout.close()
    proxy.wait_for_profile("42")
    profile = json.loads((proxy.prefix / "profiles" / "42.profile").read_text())
    assert {c["name"]: c["ctype"]["Counter"]["value"] for c in profile["counters"] if c["name"] == "work"} == {"work": 110}
    assert proxy.value("main", "work") == 110


def test_this_proxy_and_its_child_may_begin_anew(proxy, child):
    child.start()
    address = child.beacon()["address"]
    port = address.split(":")[1]
    program = child.count(100, "42", wait=True)
    proxy.start("-s", f"{address}@{PERIOD}")
    proxy.wait_for_value("main", "work", 100)
    proxy.end()
    proxy.start("-s", f"{address}@{PERIOD}")
    proxy.wait_for_value("42", "work", 100)  # the successor asks again, and adds nothing to what the state kept
    proxy.wait_for_value("main", "work", 100)
    child.kill()
    wait_up(proxy, address, False)
    assert proxy.value("main", "work") == 100
    child.start("-p", port)
    wait_up(proxy, address)
    proxy.wait_for_value("main", "work", 100)  # it has found its segments again
    program.stdin.close()
    assert program.wait(timeout=30) == 0
    program.stdout.close()


def test_a_proxy_needs_to_be_admitted(proxy, child):
    child.start()
    address = child.beacon()["address"]
    program = child.count(100, "42", wait=True)
    proxy.start()
    operation(proxy, f"/join?to={address}&period={PERIOD}")
    wait_until(lambda: "--legacy-peers" in targets(proxy)[address]["error"], "the refusal")
    assert proxy.value("main", "work") is None
    proxy.end()
    assert "10.0.0.1/8" in proxy.refusal("--legacy-peers", "10.0.0.1/8")
    proxy.start("--legacy-peers", "10.0.0.0/8,127.0.0.0/8")
    operation(proxy, f"/join?to={address}&period={PERIOD}")
    proxy.wait_for_value("main", "work", 100)
    program.stdin.close()
    assert program.wait(timeout=30) == 0
    program.stdout.close()


def test_node_exporter_is_read_in_full(proxy):
    path = shutil.which("prometheus-node-exporter")
    if path is None:
        pytest.skip("needs prometheus-node-exporter")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    exporter = subprocess.Popen([path, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL)
    try:
        proxy.start("-s", f"{address}@{PERIOD}")
        wait_up(proxy, address)
        wait_until(lambda: (proxy.value("main", f'cicada_scrape_samples{{target="http://{address}"}}') or 0) > 100, "samples")
        assert proxy.value("main", f'cicada_scrape_bad_lines_total{{target="http://{address}"}}') == 0
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        # What a counter was a moment ago, it has reached soon after.
        name, was = next(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("node_context_switches_total"))
        wait_until(lambda: (proxy.value("main", name) or 0) >= float(was), name)
        shown = proxy.metrics()
        assert "# TYPE node_cpu_seconds_total counter" in shown
        assert "# TYPE node_memory_MemTotal_bytes gauge" in shown
        total = next(line.split()[1] for line in text.splitlines() if line.startswith("node_memory_MemTotal_bytes"))
        assert proxy.value("main", "node_memory_MemTotal_bytes") == float(total)
        assert proxy.value("main", 'go_gc_duration_seconds{quantile="0.5"}') is not None
    finally:
        exporter.terminate()
        exporter.wait()
