# SPDX-License-Identifier: BSD-3-Clause
"""tracereader: reads DFTracer traces without our own reader, and says what is wrong with them."""
import gzip
import hashlib
import json
import subprocess
import zlib

COMPLETE, COUNTER, METADATA = 1, 2, 4


def host_hash(host):
    return hashlib.md5(host.encode(), usedforsecurity=False).digest()[::2].hex()


class Trace:
    def __init__(self, path, events):
        self.path, self.events = path, events
        self.counters = [e for e in events if e["ph"] == COUNTER]
        self.stamps = sorted({e["ts"] for e in self.counters})
        self.is_ended = bool(events) and events[-1]["ph"] == COMPLETE and events[-1]["name"] == "end"

    def named(self, name):
        """The events of that name, in the order of the file."""
        return [e for e in self.events if e["name"] == name]

    def args(self, name):
        return [e["args"] for e in self.named(name)]

    def names(self):
        return {e["name"] for e in self.counters}

    def host(self):
        names = {e["args"]["name"] for e in self.events if e["ph"] == METADATA and e["name"] == "HH"}
        assert len(names) == 1, f"{self.path}: host names {names}"
        return names.pop()

    def steps_ms(self, name):
        """The times between the events of one series, in milliseconds (for traces in microseconds)."""
        stamps = [e["ts"] for e in self.named(name)]
        return [(b - a) / 1000 for a, b in zip(stamps, stamps[1:])]

    def longest_gap_ms(self):
        return max((b - a for a, b in zip(self.stamps, self.stamps[1:])), default=0) / 1000

    def covers(self, from_us, to_us, slack_us):
        return self.stamps[0] <= from_us + slack_us and self.stamps[-1] >= to_us - slack_us


def unpack_so_far(path):
    """The text of a trace that may still be written, from what whole members there are; empty when there is no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b""
    if path.suffix != ".gz":
        return data
    text = b""
    while data:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            part = member.decompress(data)
        except zlib.error:
            break
        if not member.eof:
            break
        text += part
        data = member.unused_data
    return text


def events_so_far(path):
    """Events of a trace that may still be written; none when there is no file yet."""
    return [json.loads(line) for line in unpack_so_far(path).split(b"\n") if line.rstrip().endswith(b"}")]


def load(path, has_counters=True):
    """A trace that must be valid: gzip to its last byte, whole lines of JSON, one host, stamps that never fall."""
    if path.suffix == ".gz":
        subprocess.run(["gzip", "-t", path], check=True)
        with gzip.open(path) as file:
            text = file.read()
    else:
        text = path.read_bytes()
    assert text.endswith(b"\n"), f"{path}: the last line is not whole"
    trace = Trace(path, [json.loads(line) for line in text.decode("utf-8").split("\n")[:-1]])
    assert trace.counters or not has_counters, f"{path}: no counters"
    hashes = {e["args"]["hhash"] for e in trace.events}
    assert hashes == {host_hash(trace.host())}, f"{path}: hashes {hashes} for host {trace.host()}"
    stamps = [e["ts"] for e in trace.counters]
    assert stamps == sorted(stamps), f"{path}: stamps run backwards"
    if trace.is_ended:
        assert trace.events[-1]["args"]["num_events"] == len(trace.events), f"{path}: the number of events is wrong"
    return trace
