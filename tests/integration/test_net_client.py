# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP client against targets that are dead, silent, endless or strange; the loop goes on meanwhile."""
import os
import socket
import subprocess
import threading
import time
from urllib.parse import quote

import pytest

from support.net import NetServer
from support.waiting import wait_until


@pytest.fixture
def server():
    one = NetServer("--sweep-ms", 50)
    yield one
    one.close()


class Target:
    """Listens, and treats each connection as `serve` does, on a thread of its own."""

    def __init__(self, serve):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.served = 0
        self.requests = []
        self.peer = None
        self.serve = serve
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.served += 1
            self.peer = peer
            try:
                self.requests.append(peer.recv(65536))
                self.serve(peer)
            except OSError:
                pass
            peer.close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        try:
            self.peer.shutdown(socket.SHUT_RDWR)  # which ends a read of the thread
        except (AttributeError, OSError):
            pass
        self.thread.join()


@pytest.fixture
def target():
    made = []

    def make(serve):
        made.append(Target(serve))
        return made[-1]

    yield make
    for one in made:
        one.close()


def fetch(server, url, **options):
    query = "".join(f"&{name}={value}" for name, value in options.items())
    answer = server.get(f"/fetch?url={quote(url, safe='')}{query}")
    return answer.json()


def endless(peer):
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        peer.sendall(b"x" * 65536)


def hundred_megabytes(peer):
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
    for _ in range(1600):
        peer.sendall(b"x" * 65536)


def endless_head(peer):
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        peer.sendall(b"X-A: " + b"b" * 1000 + b"\r\n")


def drip(peer):
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        peer.sendall(b"x")
        time.sleep(0.02)


def silent(peer):
    peer.recv(1)  # until the client has had enough


def saying(text):
    return lambda peer: peer.sendall(text)


def test_answer_is_handed_over_whole(server, target):
    one = target(saying(b"HTTP/1.1 200 OK\r\nContent-Type: text/x-y\r\nContent-Length: 5\r\n\r\nhello"))
    result = fetch(server, f"http://127.0.0.1:{one.port}/a?b")
    assert (result["code"], result["status"], result["length"], result["type"]) == (0, 200, 5, "text/x-y")
    assert one.requests[0].startswith(b"GET /a?b HTTP/1.1\r\n")


def test_body_over_the_limit_ends_the_request(server, target):
    for serve in (endless, hundred_megabytes):
        result = fetch(server, f"http://127.0.0.1:{target(serve).port}/", max=100000, timeout=20000)
        assert "larger" in result["why"] and result["length"] <= 100000
        assert result["took_ms"] < 10000  # and not at the deadline


def test_hundred_megabytes_arrive_when_they_may(server, target):
    result = fetch(server, f"http://127.0.0.1:{target(hundred_megabytes).port}/", max=200_000_000, timeout=20000)
    assert (result["code"], result["length"]) == (0, 104857600)


def test_endless_head_ends_the_request(server, target):
    result = fetch(server, f"http://127.0.0.1:{target(endless_head).port}/", timeout=20000)
    assert "larger" in result["why"] and result["took_ms"] < 10000


@pytest.mark.parametrize("serve", [silent, drip])
def test_deadline_ends_a_request_and_others_are_served_meanwhile(server, target, serve):
    one = target(serve)
    connection = server.connect()
    connection.send_request(f"/fetch?timeout=500&url=http://127.0.0.1:{one.port}/")
    wait_until(lambda: one.served, "the request")
    assert server.get("/hello").status == 200
    result = connection.read_answer().json()
    connection.close()
    assert result["code"] == -110 and 400 <= result["took_ms"] < 5000  # ETIMEDOUT


def test_listener_that_never_accepts_is_given_up(server):
    with socket.socket() as black_hole:
        black_hole.bind(("127.0.0.1", 0))
        black_hole.listen(0)
        port = black_hole.getsockname()[1]
        fillers = []
        for _ in range(4):  # until its queue is full, and the kernel drops what comes
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        assert fetch(server, f"http://127.0.0.1:{port}/", timeout=300)["code"] == -110
        for filler in fillers:
            filler.close()


def test_dead_target_is_told_at_once(server):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening
        result = fetch(server, f"http://127.0.0.1:{nobody.getsockname()[1]}/")
    assert result["code"] == -111 and result["took_ms"] < 2000  # ECONNREFUSED


def test_redirect_is_not_followed(server, target):
    elsewhere = target(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    one = target(saying(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % elsewhere.port))
    assert fetch(server, f"http://127.0.0.1:{one.port}/")["status"] == 302
    assert elsewhere.served == 0


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "scp://x/y", "nonsense", "", "http://",
                                 "http://x:99999999/", "http://-x/", "http://a b/", "unix:///x", "http://x\r\nHost: y/", "dict://127.0.0.1:11/"])
def test_other_urls_are_refused(server, url):
    answer = server.get(f"/fetch?url={quote(url, safe='')}")
    assert answer.status == 502


def test_https_to_a_plain_target_fails_in_words(server, target):
    result = fetch(server, f"https://127.0.0.1:{target(saying(b'HTTP/1.1 200 OK')).port}/")
    assert result["code"] < 0 and len(result["why"]) > 20


@pytest.mark.parametrize("text", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", b"HTTP/0.9"])
def test_strange_answers_are_failures(server, target, text):
    assert fetch(server, f"http://127.0.0.1:{target(saying(text)).port}/")["code"] < 0


def test_one_key_has_one_request_at_a_time(server, target):
    one = target(silent)
    first, second = server.connect(), server.connect()
    first.send_request(f"/fetch?timeout=600&url=http://127.0.0.1:{one.port}/")
    wait_until(lambda: one.served, "the first request")
    second.send_request(f"/fetch?timeout=600&url=http://127.0.0.1:{one.port}/")
    assert "under way" in second.read_answer().why()
    assert first.read_answer().json()["code"] == -110
    for connection in (first, second):
        connection.close()


def test_connection_is_used_again(server, target):
    def keep(peer):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        peer.sendall(answer)
        while peer.recv(65536):
            peer.sendall(answer)

    one = target(keep)
    for _ in range(5):
        assert fetch(server, f"http://127.0.0.1:{one.port}/")["length"] == 2
    assert one.served == 1


def test_proxy_of_the_environment_is_not_used(target):
    proxy = target(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy"))
    one = target(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    url = f"http://127.0.0.1:{proxy.port}/"
    server = NetServer(env={**os.environ, "http_proxy": url, "all_proxy": url, "no_proxy": ""})
    assert fetch(server, f"http://127.0.0.1:{one.port}/")["length"] == 2
    assert proxy.served == 0
    server.close()


def test_request_whose_asker_went_is_cancelled(server, target):
    one = target(silent)
    connection = server.connect()
    connection.send_request(f"/fetch?timeout=600000&url=http://127.0.0.1:{one.port}/")
    wait_until(lambda: one.served, "the request")
    connection.close()
    wait_until(lambda: server.stats()["gone"] == 1, "the handler to be told")
    assert "code" in fetch(server, f"http://127.0.0.1:{one.port}/", timeout=100)  # the key is free again


def test_name_is_looked_up_and_all_its_addresses_are_tried(server, target):
    one = target(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))  # on 127.0.0.1 alone; localhost is ::1, too
    assert fetch(server, f"http://localhost:{one.port}/")["length"] == 2
    assert b"\r\nHost: localhost:%d\r\n" % one.port in one.requests[0]


def asked_names(name_server):
    name_server.setblocking(False)
    names = set()
    while True:
        try:
            question = name_server.recv(4096)
        except BlockingIOError:
            return names
        names.add(question[13:13 + question[12]])


def test_names_that_hang_hold_up_nobody(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives a process a resolv.conf of its own")
    name_server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # takes questions, answers none
    name_server.bind(("127.53.53.53", 53))
    (tmp_path / "resolv.conf").write_text("nameserver 127.53.53.53\noptions timeout:30 attempts:5\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
    script = (f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && mount --bind {tmp_path}/nsswitch.conf /etc/nsswitch.conf && "
              'exec "$0" "$@"')
    server = NetServer("--sweep-ms", 50, prefix=["unshare", "-m", "sh", "-c", script],
                       env={**os.environ, "UV_THREADPOOL_SIZE": "16"})
    askers = [server.connect() for _ in range(10)]
    begin = time.monotonic()
    for number, asker in enumerate(askers):
        asker.send_request(f"/fetch?timeout=700&url=http://name-{number}.example/")
    for _ in range(20):
        assert server.get("/hello").status == 200
    assert "code" in fetch(server, f"http://127.0.0.1:{server.port}/hello")  # numbers need no name server
    assert "code" in fetch(server, f"http://127.0.0.1:{server.port}/big?bytes=2000000")  # nor does the pool's other half
    for asker in askers:
        result = asker.read_answer().json()
        assert result["code"] == -110 and "looking up" in result["why"]
        asker.close()
    assert time.monotonic() - begin < 15
    assert 1 <= len(asked_names(name_server)) <= 2  # though the pool has room for more
    server.close()  # though two look-ups still hang
    name_server.close()


def test_name_that_is_not_there_is_told_and_remembered(server):
    results = [fetch(server, "http://nobody.invalid/", timeout=20000) for _ in range(2)]
    assert all(result["code"] < 0 and "nobody.invalid" in result["why"] for result in results)
    assert results[1]["took_ms"] < 100


def test_busy_client_leaves_no_descriptors_behind(server, target):
    one = target(saying(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
    for _ in range(50):
        assert fetch(server, f"http://127.0.0.1:{one.port}/")["code"] == 0
    listing = subprocess.run(["ls", f"/proc/{server.process.pid}/fd"], capture_output=True, text=True, check=True)
    assert len(listing.stdout.split()) < 30
