# SPDX-License-Identifier: BSD-3-Clause
"""What the proxy tells Prometheus: promtool reads it, and a real Prometheus scrapes the right sums."""
import gzip
import json
import re
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest

from support.proxy import Proxy
from support.waiting import wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
UGLY = 'strange{label="a \\"quoted\\" back\\\\slash",other="ümläut"}'


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


@pytest.fixture
def counted(proxy):
    """A proxy with a job that has counted things with difficult names."""
    proxy.start("--auth", "none")
    client = proxy.connect()
    client.join("42")
    for name in ("reads_total", 'reads_total{disk="a"}', "reads_more", "mpi___hits___mpi_send", UGLY, "9 lives", "reads"):
        client.declare_counter(name)
        client.add(name, 3)
    client.declare_gauge("heat")
    client.set("heat", 36.6)
    proxy.wait_for_value("42", "reads", 3)
    return proxy


def promtool(text):
    return subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)


def families(text):
    return re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)


def test_text_form_is_read_by_promtool(counted):
    text = counted.metrics("42")
    done = promtool(text)
    assert done.returncode in (0, 3), done.stderr  # 3: it would have other names; 1: it can't read it
    assert "reads_total 3\n" in text and 'reads_total{disk="a"} 3\n' in text and "heat 36.6\n" in text
    assert 'strange{label="a \\"quoted\\" back\\\\slash",other="ümläut"} 3\n' in text
    types = dict(families(text))
    assert types["reads_total"] == "counter" and types["mpi___hits___mpi_send"] == "counter" and types["heat"] == "gauge"
    assert "nan" not in text.lower().replace("finance", "")


def test_families_come_once_and_in_one_piece(counted):
    for accept in ("text/plain", OPENMETRICS):
        text = counted.metrics("42", Accept=accept)
        names = [name for name, _ in families(text)]
        assert len(names) == len(set(names))
        current = None
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                current = line.split()[2]
            elif not line.startswith("#"):
                assert re.split(r"[{ ]", line)[0] in (current, f"{current}_total"), line
    assert counted.metrics("42") == counted.metrics("42"), "the order is always the same"


def test_openmetrics_has_its_own_rules_for_counters(counted):
    status, headers, text = counted.ask("/metrics/?job=42", headers={"Accept": OPENMETRICS})
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    types = dict(families(text))
    assert types["mpi___hits___mpi_send"] == "unknown"
    # `reads` is a metric of its own here: reads_total can't be its counter.
    assert types["reads_total"] == "unknown" and types["reads"] == "unknown"
    assert dict(families(counted.metrics(Accept=OPENMETRICS)))["cicada_proxy_ticks"] == "counter"
    assert "cicada_proxy_ticks_total " in counted.metrics(Accept=OPENMETRICS)


@pytest.mark.parametrize("accept, is_openmetrics", [
    ("", False), ("*/*", False), ("text/plain;q=0.5,application/openmetrics-text;q=0.4", False),
    ("text/plain;q=0.5, application/openmetrics-text; version=1.0.0; q=0.7", True), ("application/openmetrics-text;q=0", False),
    ("application/openmetrics-text;q=abc", False), (",,;;,", False),
])
def test_accept_decides(counted, accept, is_openmetrics):
    assert counted.metrics(Accept=accept).endswith("# EOF\n") == is_openmetrics


def test_own_names_follow_all_rules(proxy):
    proxy.options.remove("--no-telemetry")
    proxy.start("--names", "cicada")
    node = f"Node: {socket.gethostname().split('.')[0]}"
    wait_until(lambda: "cicada_node_cpu_seconds_total" in proxy.metrics(node), "telemetry of the node")
    for text in (proxy.metrics(), proxy.metrics(node)):
        assert "proxy_cpu" not in text
        # A counter of jobs that ends in no _total is an MPI rank's: legacy, and not here.
        lines = [line for line in text.splitlines() if re.match(r"(# \S+ )?(cicada|process)_", line)]
        done = promtool("\n".join(lines) + "\n")
        assert done.returncode == 0, done.stdout + done.stderr


def test_answer_is_packed_for_those_who_take_it(counted):
    request = urllib.request.Request(counted.url("/metrics"), headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"# TYPE reads counter" in gzip.decompress(answer.read())


def test_many_metrics_are_told_in_pieces_and_whole(proxy):
    proxy.start()
    clients = []
    for number in range(5):
        client = proxy.connect()
        client.join("large")
        for i in range(6000):
            client.declare_counter(f'many_total{{i="{number * 6000 + i:05}"}}')
        client.declare_counter("last")
        client.add("last", 1)
        clients.append(client)
    proxy.wait_for_value("large", "last", 5)
    text = proxy.metrics("large")
    numbers = re.findall(r'^many_total\{i="(\d+)"\} 0$', text, re.MULTILINE)
    assert numbers == [f"{i:05}" for i in range(30000)] and text.count("# TYPE many_total") == 1
    everything = json.loads(proxy.ask("/job")[2])
    assert {one["desc"]["jobid"] for one in everything} >= {"main", "large"}


def test_real_prometheus_scrapes_the_right_sum(counted, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
              "scrape_configs": [{"job_name": "cicada", "static_configs": [{"targets": [counted.beacon()["address"]]}]}]}
    (tmp_path / "prometheus.json").write_text(json.dumps(config))
    clients = [counted.connect() for _ in range(4)]
    for client in clients:
        client.join("sum")
        client.declare_counter("summed_total")
        client.add("summed_total", 10.5)
    with (tmp_path / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.json", f"--storage.tsdb.path={tmp_path}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        def query():
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": "sum(summed_total)"})
                with urllib.request.urlopen(url, timeout=10) as answer:
                    result = json.load(answer)["data"]["result"]
                return result and float(result[0]["value"][1]) == 42
            except OSError:
                return False
        wait_until(query, "the sum that Prometheus has", timeout_s=60)
    finally:
        process.terminate()
        process.wait(timeout=30)
