# SPDX-License-Identifier: BSD-3-Clause
"""proxy_core: the core of the metric proxy and clients of it, in a /dev/shm of their own."""
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

from support.waiting import wait_until

TESTS_DIR = Path(os.environ.get("CICADA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build" / "release")).resolve() / "tests"
HOST = TESTS_DIR / "proxy_core_host"
KILL_AT_SYSCALL = TESTS_DIR / "kill_at_syscall"
COUNT_CLIENT = TESTS_DIR / "count_client"
PREPARE = 'mount -t tmpfs cicada-test /dev/shm && echo ready && exec sleep infinity'


class Place:
    """A mount name space with an empty /dev/shm, a prefix, and at most one proxy at a time."""

    def __init__(self, directory, period_ms=50, linger_ms=300):
        self.prefix = directory / "prefix"
        self.socket_path = directory / "socket"
        self.dump_path = directory / "dump.json"
        self.log_path = directory / "log"
        self.options = ["--period-ms", str(period_ms), "--linger-ms", str(linger_ms)]
        self.proxy = None
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", PREPARE], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"

    def command(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-m", f"-w{os.getcwd()}", *map(str, words)]

    def start(self, *options):
        with self.log_path.open("ab") as log:
            self.proxy = subprocess.Popen(
                self.command(HOST, self.prefix, self.socket_path, self.dump_path, *self.options, *options),
                stdout=subprocess.PIPE, stderr=log)
        assert self.proxy.stdout.readline() == b"ready\n", self.log()
        return self.proxy

    def run_until_stop(self, syscall, stop):
        """Runs a proxy that dies at that stop after its first system call of that number; True when it did."""
        with self.log_path.open("ab") as log:
            done = subprocess.run(self.command(KILL_AT_SYSCALL, syscall, stop, HOST, self.prefix, self.socket_path,
                                               self.dump_path, *self.options),
                                  stdout=subprocess.DEVNULL, stderr=log, timeout=60, check=False)
        return done.returncode == 0

    def kill(self):
        self.proxy.kill()
        self.proxy.wait()
        self.proxy.stdout.close()

    def end(self):
        """As systemd ends it; it must be quick and without a complaint."""
        self.proxy.send_signal(signal.SIGTERM)
        assert self.proxy.wait(timeout=30) == 0, self.log()
        self.proxy.stdout.close()

    def close(self):
        if self.proxy is not None and self.proxy.poll() is None:
            self.kill()
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # What the proxy says

    def dump(self):
        """All jobs, after a tick that was made for it."""
        self.dump_path.unlink(missing_ok=True)
        self.proxy.send_signal(signal.SIGUSR1)
        wait_until(self.dump_path.exists, "a dump")
        return Dump(json.loads(self.dump_path.read_text()))

    def wait_for(self, condition, what):
        def ask():
            dump = self.dump()
            return dump if condition(dump) else None
        return wait_until(ask, what)

    def segments(self):
        listing = subprocess.run(self.command("find", "/dev/shm", "-name", "*.segment"), capture_output=True,
                                 text=True, check=True)
        return listing.stdout.split()

    def profile(self, file):
        return json.loads((self.prefix / "profiles" / file).read_text())

    def profiles(self):
        directory = self.prefix / "profiles"
        return sorted(path.name for path in directory.iterdir()) if directory.exists() else []

    # Clients

    def count(self, times, children=0, job="", wait=False, **variables):
        """Starts a program that counts `work`; with `wait` it has counted and lives until its stdin ends."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PMIX", "PROXY"))}
        env.update(PROXY_PATH=str(self.socket_path), PROXY_JOB_ID=job, **variables)
        words = [COUNT_CLIENT, times, children, *(["wait"] if wait else [])]
        program = subprocess.Popen(self.command(*words), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if wait:
            assert program.stdout.readline() == b"counted\n"
        return program

    def connect(self):
        return JsonClient(self.socket_path)


class Dump:
    def __init__(self, whole):
        self.jobs = {entry["shown"]: entry for entry in whole["jobs"]}
        self.stats = whole["stats"]

    def value(self, job, metric):
        """A counter's value, a gauge's mean; None when there is none."""
        for counter in self.jobs[job]["job"]["counters"] if job in self.jobs else []:
            if counter["name"] == metric:
                return value_of(counter)
        return None

    def node(self):
        return next(name for name in self.jobs if name.startswith("Node: "))


def value_of(counter):
    if "Counter" in counter["ctype"]:
        return counter["ctype"]["Counter"]["value"]
    gauge = counter["ctype"]["Gauge"]
    return gauge["total"] / gauge["hits"] if gauge["hits"] else None


class JsonClient:
    """A client of the existing proxy's protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))

    def send(self, *messages):
        self.socket.sendall(b"".join(json.dumps(message).encode() + b"\0" for message in messages))

    def send_bytes(self, data):
        self.socket.sendall(data)

    def join(self, job, **fields):
        self.send({"JobDesc": {"jobid": job, "command": "./app", "size": 1, "nodelist": "", "partition": "",
                               "cluster": "", "run_dir": "/x", "start_time": 1700000000000, "end_time": 0, **fields}})

    def declare_counter(self, name):
        self.send({"Desc": {"name": name, "doc": f"what {name} is", "ctype": {"Counter": {"ts": 0, "value": 0.0}}}})

    def declare_gauge(self, name):
        self.send({"Desc": {"name": name, "doc": "", "ctype": {"Gauge": {"min": 0.0, "max": 0.0, "hits": 0.0, "total": 0.0}}}})

    def add(self, name, value):
        self.send({"Value": {"name": name, "value": {"Counter": {"ts": 1, "value": value}}}})

    def set(self, name, value):
        self.send({"Value": {"name": name, "value": {"Gauge": {"min": value, "max": value, "hits": 1.0, "total": value}}}})

    def is_closed_by_peer(self):
        self.socket.settimeout(20)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()
