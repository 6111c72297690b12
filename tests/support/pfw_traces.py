# SPDX-License-Identifier: BSD-3-Clause
"""Traces made up for the tests of `pfw`: what a service of two cores, one disk and one interface would write."""

import gzip
import hashlib
import json
import random

START_US = 1796098782000000


def host_hash(host):
    return hashlib.md5(host.encode(), usedforsecurity=False).digest()[::2].hex()


class Trace:
    """The lines of one run of a service on one host."""

    def __init__(self, host="node1", start_us=START_US, interval_us=1000000, seed=1, pid=4242):
        self.host, self.hash, self.pid = host, host_hash(host), pid
        self.now_us, self.interval_us = start_us, interval_us
        self.random = random.Random(seed)
        self.lines = []

    def put(self, **event):
        self.lines.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False))

    def complete(self, name, **args):
        self.put(id=len(self.lines), name=name, cat="dftracer", type=1, pid=self.pid, tid=self.pid, ts=self.now_us,
                 dur=0, ph=1, args={"hhash": self.hash, **args})

    def metadata(self, name, **args):
        self.put(name=name, cat="dftracer", type=1, pid=self.pid, tid=self.pid, ts=self.now_us, ph=4,
                 args={"hhash": self.hash, **args})

    def counter(self, name, cat, **args):
        self.put(name=name, cat=cat, type=7, ts=self.now_us, ph=2, pid=self.pid, tid=0,
                 args={"hhash": self.hash, **args})

    def begin(self):
        self.complete("start", trace_interval_ms=self.interval_us // 1000, time_metric="US")
        self.put(name="HH", cat="dftracer", type=1, pid=self.pid, tid=self.pid, ph=4,
                 args={"hhash": self.hash, "name": self.host, "value": self.hash})
        return self

    def tick(self):
        for name in ("cpu", "cpu-0", "cpu-1"):
            user, system = self.random.uniform(0, 60), self.random.uniform(0, 30)
            self.counter(name, "sys", user_pct=round(user, 4), nice_pct=0, system_pct=round(system, 4),
                         idle_pct=round(100 - user - system, 4), iowait_pct=0, irq_pct=0, softirq_pct=0, steal_pct=0)
        self.counter("memory", "sys", MemTotal=24292956, MemFree=self.random.randrange(24292956), used_pct=12.5)
        self.counter("vda", "io", reads_completed=self.random.randrange(100), bytes_read=self.random.randrange(10**9),
                     writes_completed=3, bytes_written=4096, ios_in_progress=0)
        self.counter("net-eth0", "net", bytes_recv=self.random.randrange(10**8), packets_recv=7, bytes_sent=0)
        self.now_us += self.interval_us
        return self

    def ticks(self, count):
        for _ in range(count):
            self.tick()
        return self

    def pause(self, seconds):
        self.now_us += int(seconds * 1e6)
        return self

    def end(self):
        self.complete("end", num_events=len(self.lines) + 1, dropped=0)
        return self

    def text(self):
        return "".join(line + "\n" for line in self.lines).encode()

    def members(self, lines_each=7):
        """gzip, a member for each few lines, as a writer that flushes often leaves it."""
        return [gzip.compress("".join(line + "\n" for line in self.lines[at:at + lines_each]).encode(), mtime=0)
                for at in range(0, len(self.lines), lines_each)]

    def gz(self, lines_each=7):
        return b"".join(self.members(lines_each))


def whole(host="node1", ticks=20, **options):
    return Trace(host, **options).begin().ticks(ticks).end()
