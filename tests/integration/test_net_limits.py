# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP server under clients that are slow, many, or greedy: they are ended, and others are served."""
import os
import resource
import socket
import threading
import time

import pytest

from support.net import NetServer
from support.waiting import wait_until


@pytest.fixture
def server_with():
    made = []

    def make(*options, **popen):
        made.append(NetServer("--sweep-ms", 20, *options, **popen))
        return made[-1]

    yield make
    for one in made:
        one.close()


def drip(connection, data, every_s=0.02):
    """Byte by byte, until the peer has had enough. Returns what it said."""
    for byte in data:
        try:
            connection.sock.sendall(bytes([byte]))
        except OSError:
            break
        connection.sock.settimeout(every_s)
        try:
            if not connection.read_more():
                break
        except TimeoutError:
            continue
        except ConnectionResetError:
            break
    else:
        pytest.fail("the server took all of it, however slow")
    connection.close()
    return connection.held


ENDLESS_HEAD = b"GET /hello HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 1000
SLOW = {
    "first line": b"GET /" + b"a" * 8000,
    "head": ENDLESS_HEAD,
    "body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + b"x" * 59999,
    "chunks": b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 9000,
}


@pytest.mark.parametrize("part", SLOW)
def test_request_that_comes_byte_by_byte_is_ended_by_total_time(server_with, part):
    server = server_with("--header-ms", 300, "--request-ms", 600)
    assert b"200 OK" not in drip(server.connect(), SLOW[part])
    assert server.stats()["timed_out"] == 1


@pytest.mark.parametrize("part", ["first line", "head"])
def test_second_request_of_a_connection_is_timed_as_well(server_with, part):
    server = server_with("--header-ms", 300, "--request-ms", 600, "--idle-ms", 500)
    connection = server.connect()
    connection.send_request("/hello")
    assert connection.read_answer().status == 200
    drip(connection, SLOW[part])


def test_silent_connection_is_ended(server_with):
    server = server_with("--header-ms", 200)
    connection = server.connect()
    assert connection.read_to_end() == b""
    connection.close()


def test_idle_connection_is_kept_and_then_ended(server_with):
    server = server_with("--header-ms", 50, "--idle-ms", 400)
    connection = server.connect()
    for _ in range(3):
        connection.send_request("/hello")
        assert connection.read_answer().status == 200
        wait_until(lambda: server.stats()["connections"] == 2, "the other one to close")
    assert connection.read_to_end() == b""
    connection.close()
    assert server.stats()["timed_out"] == 0  # which is no fault


@pytest.mark.parametrize("target", ["/big?bytes=9000000", "/stream?n=0"], ids=["answer", "stream"])
def test_reader_that_stalls_is_ended(server_with, target):
    server = server_with("--request-ms", 200)
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before it connects: a small window
    stalled.connect(("127.0.0.1", server.port))
    stalled.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    wait_until(lambda: server.stats()["timed_out"] == 1, "the stalled reader to be ended")
    stalled.close()


def test_slow_answer_of_the_handler_is_not_ended(server_with):
    server = server_with("--request-ms", 100, "--header-ms", 100)
    connection = server.connect()
    connection.send_request("/later?ms=700")
    assert connection.read_answer().json() == {"hello": True}
    connection.send_request("/stream?n=2&ms=700")
    connection.read_until(b"data: 1\n\n")
    connection.close()


@pytest.mark.parametrize("head, statuses", [
    ("X-A: " + "b" * 20000 + "\r\n", (431,)), ("X-A: b\r\n" * 3000, (431,)), ("X-A: " + "b" * 9000 + "\r\n", (200,))])
def test_head_larger_than_the_pool_is_refused(server_with, head, statuses):
    server = server_with()
    connection = server.connect()
    connection.send("GET /hello HTTP/1.1\r\nHost: x\r\n" + head + "Connection: close\r\n\r\n")
    assert int(connection.read_to_end().split()[1]) in statuses
    connection.close()


def test_target_larger_than_the_pool_is_refused(server_with):
    server = server_with()
    connection = server.connect()
    connection.send("GET /" + "a" * 40000 + " HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 414 " in connection.read_to_end()[:20]
    connection.close()


def test_thousand_idle_connections_keep_nobody_out(server_with):
    server = server_with()
    idle = [server.connect() for _ in range(1000)]
    served = server.connect()
    for _ in range(20):
        served.send_request("/hello")
        assert served.read_answer().status == 200
    stats = server.stats()
    assert stats["connections"] <= 512 and stats["evicted"] >= 480
    used = server.cpu_s()
    time.sleep(0.5)  # nothing is waited for: in this time nothing may be done
    assert server.cpu_s() - used < 0.2
    for connection in [*idle, served]:
        connection.close()


def test_busy_connections_are_not_driven_out(server_with):
    server = server_with("--connections", 40)
    busy = [server.connect() for _ in range(25)]
    for connection in busy:
        connection.send_request("/later?ms=1500")
    wait_until(lambda: server.stats()["requests"] >= 25, "the requests")
    idle = [server.connect() for _ in range(60)]
    assert server.get("/hello").status == 200
    for connection in busy:
        assert connection.read_answer().json() == {"hello": True}
    for connection in [*busy, *idle]:
        connection.close()


def limit_descriptors(count):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def lowest_free_descriptor(server):
    taken = {int(name) for name in os.listdir(f"/proc/{server.process.pid}/fd")}
    return min(set(range(len(taken) + 1)) - taken)


def test_without_descriptors_it_waits_without_work_and_recovers(server_with, tmp_path):
    path = tmp_path / "socket"
    server = server_with("--socket", path)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (lowest_free_descriptor(server), 20000))
    waiting = server.connect()  # the kernel accepts it; the server can't
    waiting.send_request("/hello")
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    time.sleep(0.3)
    used = server.cpu_s()
    time.sleep(1)
    assert server.cpu_s() - used < 0.3, "it spins"
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (20000, 20000))
    assert waiting.read_answer().status == 200
    stats = wait_until(lambda: server.stats() if server.stats()["clients"] == 1 else None, "the client")
    assert stats["accept_pauses"] > 0 and stats["clients_pauses"] > 0
    waiting.close()
    client.close()


def test_clients_of_the_socket_leave_descriptors_for_http(server_with, tmp_path):
    path = tmp_path / "socket"
    server = server_with("--socket", path, preexec_fn=limit_descriptors(256))
    clients = []
    for _ in range(300):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        clients.append(client)
    wait_until(lambda: server.stats()["clients_refused"] > 0, "the limit")
    several = [server.connect() for _ in range(30)]
    for connection in several:
        connection.send_request("/hello")
        assert connection.read_answer().status == 200
    for one in [*clients, *several]:
        one.close()
    wait_until(lambda: server.stats()["clients"] == 0, "the clients to go")


def test_many_threads_at_once_are_all_served(server_with):
    server = server_with()
    failures = []

    def work(number):
        connection = server.connect()
        for turn in range(50):
            connection.send_request(f"/echo?n={number}-{turn}")
            if connection.read_answer().json()["params"] != [["n", f"{number}-{turn}"]]:
                failures.append((number, turn))
        connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
