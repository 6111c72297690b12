# SPDX-License-Identifier: BSD-3-Clause
"""pfw reads what users have: files put together, cut off, damaged, from pipes, and things that are no trace."""
import gzip
import json
import os
import subprocess

import pytest

from support.pfw import PFW, pfw, text
from support.pfw_traces import Trace, whole


def events(path, status=0):
    (info,) = json.loads(text("info", "--json", path, status=status))
    return info["events"]


def lines(done):
    return done.stdout.decode().splitlines()


def test_files_put_together_add_up(tmp_path):
    a, b = whole("node1", ticks=10), whole("node2", ticks=7, seed=2)
    (tmp_path / "c.pfw.gz").write_bytes(a.gz() + b.gz())
    (tmp_path / "c.pfw").write_bytes(a.text() + b.text())
    assert events(tmp_path / "c.pfw.gz") == len(a.lines) + len(b.lines)
    assert lines(pfw("cat", tmp_path / "c.pfw.gz")) == a.lines + b.lines
    assert lines(pfw("cat", tmp_path / "c.pfw")) == a.lines + b.lines
    (info,) = json.loads(text("info", "--json", tmp_path / "c.pfw.gz"))
    assert [host["name"] for host in info["hosts"]] == ["node1", "node2"]
    pfw("check", "--strict", tmp_path / "c.pfw.gz")


def test_content_tells_the_format_and_not_the_name(tmp_path):
    trace = whole()
    (tmp_path / "a.pfw.gz").write_bytes(trace.text())
    (tmp_path / "b.pfw").write_bytes(trace.gz())
    assert lines(pfw("cat", tmp_path / "a.pfw.gz")) == trace.lines
    assert lines(pfw("cat", tmp_path / "b.pfw")) == trace.lines


@pytest.mark.parametrize("form", ["text", "gz"])
def test_standard_input_is_read(form):
    trace = whole()
    assert lines(pfw("cat", "-", input=getattr(trace, form)())) == trace.lines


def test_older_traces_are_arrays_with_letters_and_no_type(tmp_path):
    old = [{"id": 0, "name": "read", "cat": "POSIX", "pid": 5, "tid": 6, "ts": 1796098782000000, "dur": 7, "ph": "X",
            "args": {"hhash": "aa", "ret": 4096}},
           {"id": 1, "name": "HH", "cat": "dftracer", "pid": 5, "tid": 6, "ph": "M",
            "args": {"hhash": "aa", "name": "n1", "value": "aa"}},
           {"id": 2, "name": "cpu", "cat": "sys", "pid": 5, "tid": 6, "ts": 1796098783000000, "ph": "C",
            "args": {"hhash": "aa", "user_pct": 4.5}}]
    path = tmp_path / "old.pfw.gz"
    path.write_bytes(gzip.compress(b"[\n" + b"".join(json.dumps(event).encode() + b",\n" for event in old)))
    (info,) = json.loads(text("info", "--json", path))
    assert (info["events"], info["complete"], info["counters"], info["metadata"]) == (3, 1, 1, 1)
    assert [json.loads(line) for line in lines(pfw("cat", path))] == old


def test_a_cut_file_is_read_up_to_the_cut_and_says_so(tmp_path):
    trace = whole()
    members = trace.members()
    path = tmp_path / "cut.pfw.gz"
    path.write_bytes(b"".join(members)[:-30])
    begin = sum(map(len, members[:-1]))
    done = pfw("cat", path, status=1)
    assert lines(done) == trace.lines[:len(lines(done))]
    assert len(lines(done)) >= 7 * (len(members) - 1)
    message = done.stderr.decode()
    assert f"last {len(members[-1]) - 30} bytes, from byte {begin} on" in message, message
    pfw("check", path, status=1)

    path = tmp_path / "cut.pfw"
    path.write_bytes(trace.text()[:-10])
    done = pfw("cat", path, status=1)
    assert lines(done) == trace.lines[:-1]
    assert f"the last line is cut off: {len(trace.lines[-1].encode()) - 9} bytes were left out" in done.stderr.decode()


def test_damage_costs_its_member_and_says_where(tmp_path):
    trace = whole()
    members = trace.members()
    members[1] = members[1][:100] + b"\xff" * 8 + members[1][108:]
    path = tmp_path / "damaged.pfw.gz"
    path.write_bytes(b"".join(members))
    done = pfw("cat", path, status=1)
    assert lines(done) == trace.lines[:7] + trace.lines[14:]
    message = done.stderr.decode()
    assert f"{len(members[1])} bytes from byte {len(members[0])} on are damaged" in message
    assert "--salvage" in message
    for command in ("info", "stats", "perfetto"):
        assert message.split(": ", 1)[1] == pfw(command, path, status=1).stderr.decode().split(": ", 1)[1]
    assert "damaged" in text("check", path, status=1)


def test_zero_bytes_at_the_end_are_told_and_do_no_harm(tmp_path):
    trace = whole()
    path = tmp_path / "zeros.pfw.gz"
    path.write_bytes(trace.gz() + bytes(5000))
    done = pfw("cat", path)
    assert lines(done) == trace.lines
    assert f"5000 zero bytes at the end, from byte {len(trace.gz())} on" in done.stderr.decode()
    assert "0 problems, 1 note" in text("check", path)
    pfw("check", "--strict", path, status=1)


def test_lines_that_are_no_json_are_counted_and_left_out(tmp_path):
    trace = whole()
    good = trace.text().splitlines(keepends=True)
    path = tmp_path / "bad.pfw"
    path.write_bytes(b"".join(good[:5]) + b'{"name":"a\xff"}\n{"name":}\n' + b"".join(good[5:]))
    done = pfw("cat", path, status=1)
    assert lines(done) == trace.lines
    assert b"2 lines are no events and were left out; the first is line 6: not JSON: byte 11: not UTF-8" in done.stderr
    report = text("check", path, status=1)
    assert "bad.pfw:6: problem: not JSON: byte 11: not UTF-8" in report
    assert "bad.pfw:7: problem: not JSON: byte 9: a value is missing" in report


@pytest.mark.parametrize("command", ["info", "check", "cat", "stats", "perfetto"])
def test_what_is_no_trace_is_named(tmp_path, command):
    (tmp_path / "rubbish").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "words").write_text("no trace\n" * 3)
    for path, words in ((tmp_path, "is a directory"), (tmp_path / "missing", "No such file"),
                        (tmp_path / "rubbish", "not a trace"), (tmp_path / "words", "not a trace")):
        done = pfw(command, path, status=2)
        assert words in done.stderr.decode() and path.name in done.stderr.decode()


def test_one_bad_file_does_not_hide_the_others(tmp_path):
    trace = whole()
    (tmp_path / "a.pfw.gz").write_bytes(trace.gz())
    done = pfw("cat", tmp_path / "missing", tmp_path / "a.pfw.gz", status=2)
    assert lines(done) == trace.lines


def test_an_empty_file_holds_no_event(tmp_path):
    for name, content in (("empty.pfw", b""), ("empty.pfw.gz", gzip.compress(b""))):
        (tmp_path / name).write_bytes(content)
        assert events(tmp_path / name) == 0
        assert lines(pfw("cat", tmp_path / name)) == []
        assert json.loads(text("perfetto", tmp_path / name)) == []
        assert "there is no event" in text("check", tmp_path / name, status=1)


def test_every_byte_of_a_small_file_may_be_wrong(tmp_path):
    """No crash, an exit status that is documented, and no line that was never written."""
    trace = Trace().begin().ticks(1)
    image = trace.gz(4)
    path = tmp_path / "a.pfw.gz"
    for offset in range(len(image)):
        path.write_bytes(image[:offset] + bytes([image[offset] ^ 0x55]) + image[offset + 1:])
        done = subprocess.run([PFW, "cat", path], capture_output=True, timeout=60, check=False)
        assert done.returncode in (0, 1), (offset, done)
        assert set(lines(done)) <= set(trace.lines) or b"cut off" in done.stderr, (offset, done)
        if done.returncode == 0:
            assert lines(done) == trace.lines, (offset, done)


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    trace = Trace().begin().ticks(2000)
    path = tmp_path / "a.pfw"
    path.write_bytes(trace.text())
    for command in ("cat", "perfetto", "stats"):
        with subprocess.Popen([PFW, command, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 0


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_messages_never_land_in_the_result_when_descriptors_are_closed(tmp_path, closed):
    """The next file that is opened would get the number of stderr."""
    (tmp_path / "a.pfw").write_bytes(b"no event\n" + Trace().begin().tick().text())
    done = subprocess.run(["sh", "-c", f'"$0" perfetto -o out.json a.pfw {closed}', PFW], cwd=tmp_path,
                          stdout=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert len(json.loads((tmp_path / "out.json").read_bytes())) > 1


@pytest.mark.parametrize("command", ["cat", "info", "check", "stats", "perfetto"])
def test_a_closed_standard_output_is_told(tmp_path, command):
    (tmp_path / "a.pfw").write_bytes(Trace().begin().tick().text())
    done = subprocess.run(["sh", "-c", f'"$0" {command} a.pfw >&-', PFW], cwd=tmp_path, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    assert done.returncode == 2
    assert b"writing 'standard output'" in done.stderr


def test_a_full_disk_is_told(tmp_path):
    (tmp_path / "a.pfw").write_bytes(whole(ticks=200).text())
    for command in ("cat", "info", "check", "stats", "perfetto"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PFW, command, tmp_path / "a.pfw"], stdout=full, stderr=subprocess.PIPE, timeout=60,
                                  check=False)
        assert done.returncode == 2, command
        assert b"No space left on device" in done.stderr


@pytest.mark.parametrize("name", ["-", "fifo \x1b[2J"])
def test_progress_is_shown_on_a_terminal_only(tmp_path, name):
    """A slow pipe and a terminal as stderr: a line of progress comes and is wiped away again."""
    primary, secondary = os.openpty()
    if name != "-":
        os.mkfifo(tmp_path / name)
    with subprocess.Popen([PFW, "info", name], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=secondary) as process:
        if name != "-":
            process.stdin.close()
            process.stdin = (tmp_path / name).open("wb")
        os.close(secondary)
        line = Trace().begin().tick().text()
        seen = b""
        os.set_blocking(primary, False)
        while b"MB/s" not in seen:
            process.stdin.write(line * 1000)
            try:
                seen += os.read(primary, 65536)
            except BlockingIOError:
                pass
        process.stdin.close()
        assert process.wait(60) == 0
    os.set_blocking(primary, True)
    while not seen.endswith(b"\r\x1b[K"):
        seen += os.read(primary, 65536)
    os.close(primary)
    assert (b"standard input" if name == "-" else b"fifo  [2J: ") in seen
    assert b"\x1b[2J" not in seen
