# SPDX-License-Identifier: BSD-3-Clause
"""peers: the programs that sample a node, each started, asked for a sample a second, and ended.

A peer has a name, a pid while it runs, `samples()` taken so far, and `bytes_on_disk()` (None when it stores nothing).
"""
import gzip
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

NODE_EXPORTER, COLLECTD, SADC = "prometheus-node-exporter", "/usr/sbin/collectd", "/usr/lib/sysstat/sadc"
PACKAGES = {NODE_EXPORTER: "prometheus-node-exporter", COLLECTD: "collectd-core", SADC: "sysstat"}

PROMETHEUS_HEADERS = {
    "User-Agent": "Prometheus/2.42.0", "X-Prometheus-Scrape-Timeout-Seconds": "1", "Accept-Encoding": "gzip",
    "Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}


def missing_packages():
    return [package for program, package in PACKAGES.items() if not shutil.which(program)]


class Peer:
    """A process in the foreground that samples by itself, one sample an interval."""

    name = ""
    stores = ""

    def __init__(self, work_dir, interval_s=1.0):
        self.dir, self.interval_s, self.process = work_dir, interval_s, None
        work_dir.mkdir(parents=True)

    def command(self):
        raise NotImplementedError

    def variables(self):
        return {}

    def start(self):
        with open(self.dir / "output", "wb") as output:
            self.process = subprocess.Popen(self.command(), env={**os.environ, **self.variables()}, cwd=self.dir,
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.started_s = time.monotonic()

    @property
    def pid(self):
        return self.process.pid

    def check(self):
        if self.process.poll() is not None:
            said = (self.dir / "output").read_text(errors="replace")[-2000:]
            raise SystemExit(f"bench: {self.name} has ended with status {self.process.returncode}:\n{said}")

    def samples(self):
        return (time.monotonic() - self.started_s) / self.interval_s

    def bytes_on_disk(self):
        return None

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class NodeExporter(Peer):
    """Samples when it is scraped: by us, with the headers and the kept connection of a Prometheus server."""

    name = "node_exporter"
    stores = "answers HTTP"

    def __init__(self, work_dir, interval_s=1.0):
        super().__init__(work_dir, interval_s)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.scrapes, self.has_to_end = 0, threading.Event()
        self.scraper = threading.Thread(target=self.scrape_for_ever, daemon=True)

    def command(self):
        return [NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{self.port}", "--collector.disable-defaults", "--collector.cpu",
                "--collector.meminfo", "--collector.diskstats", "--collector.netdev", "--log.level=error"]

    def start(self):
        super().start()
        self.scraper.start()

    def scrape_for_ever(self):
        connection, due_s = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10), time.monotonic()
        while not self.has_to_end.wait(max(0.0, due_s - time.monotonic())):
            due_s += self.interval_s
            try:
                connection.request("GET", "/metrics", headers=PROMETHEUS_HEADERS)
                connection.getresponse().read()
                self.scrapes += 1
            except (OSError, http.client.HTTPException):  # not up yet: the next interval is another attempt
                connection.close()

    def samples(self):
        return self.scrapes

    def stop(self):
        self.has_to_end.set()
        super().stop()


class Collectd(Peer):
    name = "collectd"
    stores = "csv"

    def command(self):
        conf = self.dir / "collectd.conf"
        conf.write_text(f"""Hostname "bench"
FQDNLookup false
BaseDir "{self.dir}"
PIDFile "{self.dir}/pid"
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
Interval {self.interval_s}
LoadPlugin cpu
LoadPlugin memory
LoadPlugin disk
LoadPlugin interface
LoadPlugin csv
<Plugin csv>
  DataDir "{self.dir}/csv"
</Plugin>
""")
        return [COLLECTD, "-f", "-C", str(conf)]

    def bytes_on_disk(self):
        return sum(path.stat().st_size for path in (self.dir / "csv").rglob("*") if path.is_file())


class Sadc(Peer):
    """Reads all that it always reads (more than the four), and disks."""

    name = "sadc"
    stores = "binary"

    def command(self):
        return [SADC, "-S", "DISK", str(int(self.interval_s)), str(self.dir / "sa")]

    def bytes_on_disk(self):
        return (self.dir / "sa").stat().st_size


class Floor(Peer):
    """Wakes up, reads the four files of /proc, and does nothing with them: no sampler can cost less."""

    name = "(bare reads)"
    stores = "nothing"

    def __init__(self, work_dir, program, interval_s=1.0):
        super().__init__(work_dir, interval_s)
        self.program = program

    def command(self):
        return [self.program]


class Service(Peer):
    """Ours. `collectors` as in DFTRACER_COLLECTORS; None for what it does by default."""

    stores = "pfw.gz"

    def __init__(self, work_dir, program, collectors=None, interval_s=1.0, name="cicada"):
        super().__init__(work_dir, interval_s)
        self.program, self.collectors = program, collectors
        self.name = name

    def command(self):
        return [self.program, "run", str(self.dir)]

    def variables(self):
        wanted = {"DFTRACER_COLLECTORS": self.collectors} if self.collectors else {}
        return {"DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": str(self.dir / "trace"),
                "DFTRACER_TRACE_INTERVAL_MS": str(round(self.interval_s * 1000)), **wanted}

    def trace(self):
        found = list(self.dir.glob("trace_*.pfw.gz"))
        return found[0] if found else None

    def bytes_on_disk(self):
        return self.trace().stat().st_size

    def events(self):
        """Of a trace that is closed."""
        with gzip.open(self.trace(), "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def stamps_us(self):
        """Instants of all ticks."""
        return sorted({event["ts"] for event in self.events() if event["ph"] == 2})

    def collectors_ms(self):
        """CPU time of all collectors for one sample, as the end event tells it."""
        told = self.events()[-1]["args"]["used"]["collectors"].values()
        return sum(one["cpu_seconds"] / one["runs"] for one in told) * 1000


class Predecessor(Service):
    """The existing dftracer_service, of a directory with PyPI's package unpacked. It has no foreground mode."""

    def __init__(self, work_dir, package_dir, interval_s=1.0):
        super().__init__(work_dir, str(Path(package_dir) / "dftracer" / "bin" / "dftracer_service"), None, interval_s,
                         "predecessor")
        self.package_dir = Path(package_dir)
        self.daemon_pid = None

    def variables(self):
        paths = [self.package_dir / "dftracer" / "lib", self.package_dir / "dftracer" / "lib64",
                 self.package_dir / "dftracer.libs"]
        return {**super().variables(), "LD_LIBRARY_PATH": ":".join(map(str, paths))}

    def call(self, verb):
        return subprocess.run([self.program, verb, str(self.dir)], env={**os.environ, **self.variables()}, cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)

    def start(self):
        said = self.call("start")
        self.started_s = time.monotonic()
        deadline_s = self.started_s + 5
        while not (pid_files := [path for path in self.dir.glob("*.pid") if path.read_text().strip()]):
            if time.monotonic() > deadline_s:
                raise SystemExit(f"bench: the predecessor did not start:\n{said.stdout}{said.stderr}")
            time.sleep(0.05)
        self.daemon_pid = int(pid_files[0].read_text().split()[0])

    @property
    def pid(self):
        return self.daemon_pid

    def check(self):
        if not Path(f"/proc/{self.daemon_pid}").exists():
            raise SystemExit("bench: the predecessor has ended")

    def stop(self):
        if self.daemon_pid and Path(f"/proc/{self.daemon_pid}").exists():
            self.call("stop")
