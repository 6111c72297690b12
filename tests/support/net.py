# SPDX-License-Identifier: BSD-3-Clause
"""net: net_server and raw connections to it."""
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

TESTS_DIR = Path(os.environ.get("CICADA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build" / "release")).resolve() / "tests"
NET_SERVER = TESTS_DIR / "net_server"
DEADLINE_S = 30


class NetServer:
    """One net_server, which must end well."""

    def __init__(self, *options, prefix=(), **popen):
        self.process = subprocess.Popen([*prefix, NET_SERVER, *map(str, options)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **popen)
        line = self.process.stdout.readline()
        assert line.strip().isdigit(), self.process.stderr.read()
        self.port = int(line)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, complaints = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, complaints

    def connect(self, address="127.0.0.1"):
        return Connection(socket.create_connection((address, self.port), timeout=DEADLINE_S))

    def get(self, target, *headers, method="GET", body=b""):
        connection = self.connect()
        try:
            connection.send_request(target, *headers, method=method, body=body)
            return connection.read_answer(has_body=method != "HEAD")
        finally:
            connection.close()

    def stats(self):
        return self.get("/stats").json()

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    """A socket that speaks HTTP by the letter."""

    def __init__(self, sock):
        self.sock = sock
        self.held = b""

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def send_request(self, target, *headers, method="GET", body=b""):
        lines = [f"{method} {target} HTTP/1.1"]
        if not any(header.lower().startswith("host:") for header in headers):
            lines.append("Host: localhost")
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, *headers, "", ""]).encode() + body)

    def read_more(self):
        data = self.sock.recv(65536)
        self.held += data
        return data

    def read_until(self, mark):
        while mark not in self.held:
            assert self.read_more(), f"ended before {mark!r}: {self.held!r}"
        before, self.held = self.held.split(mark, 1)
        return before

    def read_exactly(self, length):
        while len(self.held) < length:
            assert self.read_more(), "ended within a body"
        data, self.held = self.held[:length], self.held[length:]
        return data

    def read_answer(self, has_body=True):
        head = self.read_until(b"\r\n\r\n").decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
        answer = Answer(int(head[0].split()[1]), headers, b"")
        if not has_body:
            return answer
        if headers.get("transfer-encoding") == "chunked":
            while size := int(self.read_until(b"\r\n"), 16):
                answer.body += self.read_exactly(size)
                assert self.read_exactly(2) == b"\r\n"
            self.read_until(b"\r\n")
        else:
            answer.body = self.read_exactly(int(headers["content-length"]))
        return answer

    def read_to_end(self):
        """All until the peer closes, also by a reset."""
        try:
            while self.read_more():
                pass
        except ConnectionResetError:
            pass
        return self.held


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def why(self):
        return self.json()["operation"]
