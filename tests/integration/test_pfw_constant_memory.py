# SPDX-License-Identifier: BSD-3-Clause
"""However long a trace is, pfw needs no more memory than for a short one."""
import gzip
import subprocess
import tempfile
import zlib
from pathlib import Path

import pytest

from support.pfw import PFW
from support.pfw_traces import Trace
from support.waiting import rounds

pytestmark = pytest.mark.plain_build  # a sanitizer's shadow memory is not ours to bound

# Bounded by what is held of one gzip member (16 MiB) and by the window on the file (8 MiB); see src/pfw/unpack.h.
RSS_MAX_KB = 48 * 1024
BLOCK = Trace().begin().ticks(500).text()
LONG_LINE_BYTES = 100 << 20


def peak_kb(pid):
    """The most memory that a process had since it began (getrusage() would count what Python had before the exec)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def stream(command, write):
    """Runs pfw on a pipe that `write` fills. Returns exit status, peak of its memory in kB, and both outputs."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as errors:
        with subprocess.Popen([PFW, *command, "-"], stdin=subprocess.PIPE, stdout=told, stderr=errors) as process:
            write(process.stdin)
            process.stdin.flush()
            peak = peak_kb(process.pid)  # all but the last 64 kB are read by now, and it waits for more
            process.stdin.close()
            process.wait()
        told.seek(0)
        errors.seek(0)
        return process.returncode, peak, told.read(), errors.read()


@pytest.mark.parametrize("form", ["plain", "small members", "one member"])
@pytest.mark.parametrize("command", [("info",), ("check",), ("stats",)])
def test_a_long_stream(form, command):
    blocks = rounds(quick=100 << 20, long=1 << 30) // len(BLOCK)
    member = gzip.compress(BLOCK, 1)

    def write(pipe):
        deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
        for _ in range(blocks):
            if form == "one member":
                pipe.write(deflate.compress(BLOCK))
            else:
                pipe.write(BLOCK if form == "plain" else member)
        if form == "one member":
            pipe.write(deflate.flush())

    status, rss_kb, told, errors = stream(command, write)
    assert status == 0 or command == ("check",), errors  # the same block again: its time stamps fall
    assert told
    assert rss_kb < RSS_MAX_KB


def test_a_line_without_an_end():
    def write(pipe):
        pipe.write(BLOCK + b'{"name":"')
        for _ in range(LONG_LINE_BYTES >> 20):
            pipe.write(b"x" * (1 << 20))
        pipe.write(b'"}\n' + BLOCK)

    status, rss_kb, told, errors = stream(("cat",), write)
    assert status == 1
    assert told == BLOCK + BLOCK
    assert f"the line of {LONG_LINE_BYTES + 12} bytes at byte {len(BLOCK)} of the text is longer".encode() in errors
    assert rss_kb < 192 * 1024  # up to the limit of 64 MiB a line is kept
