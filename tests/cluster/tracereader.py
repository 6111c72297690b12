# SPDX-License-Identifier: BSD-3-Clause
"""tracereader: reads DFTracer traces without our own reader, and says what is wrong with them."""
import gzip
import hashlib
import json
import subprocess
import zlib

COMPLETE, COUNTER, METADATA = 1, 2, 4


def host_hash(host):
    return hashlib.md5(host.encode(), usedforsecurity=False).hexdigest()[:16]


class Trace:
    def __init__(self, path, events):
        self.path, self.events = path, events
        self.counters = [e for e in events if e["ph"] == COUNTER]
        self.stamps = sorted({e["ts"] for e in self.counters})
        self.is_ended = bool(events) and events[-1]["ph"] == COMPLETE and events[-1]["name"] == "end"

    def host(self):
        names = {e["args"]["name"] for e in self.events if e["ph"] == METADATA and e["name"] == "HH"}
        assert len(names) == 1, f"{self.path}: host names {names}"
        return names.pop()

    def longest_gap_ms(self):
        return max((b - a for a, b in zip(self.stamps, self.stamps[1:])), default=0) / 1000

    def covers(self, from_us, to_us, slack_us):
        return self.stamps[0] <= from_us + slack_us and self.stamps[-1] >= to_us - slack_us


def events_so_far(path):
    """Events of a trace that may still be written; none when there is no file yet. Reads what whole members there are."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = []
    while data:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            lines += member.decompress(data).split(b"\n")
        except zlib.error:
            break
        data = member.unused_data
    return [json.loads(line) for line in lines if line.endswith(b"}")]


def load(path):
    """A trace that must be valid: gzip to its last byte, whole lines of JSON, one host, stamps that never fall."""
    subprocess.run(["gzip", "-t", path], check=True)
    with gzip.open(path) as file:
        text = file.read()
    assert text.endswith(b"\n"), f"{path}: the last line is not whole"
    trace = Trace(path, [json.loads(line) for line in text.decode("utf-8").splitlines()])
    assert trace.counters, f"{path}: no counters"
    hashes = {e["args"]["hhash"] for e in trace.events}
    assert hashes == {host_hash(trace.host())}, f"{path}: hashes {hashes} for host {trace.host()}"
    stamps = [e["ts"] for e in trace.counters]
    assert stamps == sorted(stamps), f"{path}: stamps run backwards"
    if trace.is_ended:
        assert trace.events[-1]["args"]["num_events"] == len(trace.events), f"{path}: the number of events is wrong"
    return trace
