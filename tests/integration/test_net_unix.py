# SPDX-License-Identifier: BSD-3-Clause
"""UNIX sockets: whose path it is, who connects, what they send."""
import array
import os
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.net import NET_SERVER, NetServer
from support.waiting import wait_until


@pytest.fixture
def path(tmp_path):
    return tmp_path / "socket"


@pytest.fixture
def server(path):
    one = NetServer("--sweep-ms", 50, "--socket", path)
    yield one
    one.close()


def refused(*options):
    done = subprocess.run([NET_SERVER, *map(str, options)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1, done
    return done.stderr


def client_of(path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    return client


def test_socket_is_private_and_goes_with_the_server(path):
    server = NetServer("--socket", path)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert sorted(os.listdir(path.parent)) == ["socket"]
    server.close()
    assert os.listdir(path.parent) == []


def test_living_socket_is_never_taken(server, path):
    assert "': another program listens there" in refused("--socket", path)
    client = client_of(path)
    client.send(b"here")
    wait_until(lambda: server.stats()["client_bytes"] == 4, "the bytes")
    client.close()


def test_living_socket_with_a_full_queue_is_not_taken(path):
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        clients = []
        for _ in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            client.connect_ex(str(path))
            clients.append(client)
        assert "': another program listens there" in refused("--socket", path)
        for client in clients:
            client.close()


def test_dead_socket_is_replaced(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = NetServer("--socket", path)
    client_of(path).close()
    server.close()


@pytest.mark.parametrize("make", [lambda path: path.write_text("precious"), lambda path: path.mkdir(),
                                  lambda path: path.symlink_to("/etc/passwd"), lambda path: os.mkfifo(path)],
                         ids=["file", "directory", "link", "pipe"])
def test_anything_else_at_the_path_stays(path, make):
    make(path)
    before = path.lstat().st_ino
    said = refused("--socket", path)
    assert str(path) in said and "something else than a socket" in said
    assert path.lstat().st_ino == before and os.listdir(path.parent) == ["socket"]


def test_path_too_long_is_named_with_the_limit(tmp_path):
    said = refused("--socket", tmp_path / ("x" * 120))
    assert "the kernel allows 107" in said and "shorter" in said


def test_path_of_exactly_the_limit_works(tmp_path):
    path = tmp_path / ("x" * (107 - len(str(tmp_path)) - 1))
    server = NetServer("--socket", path)
    client_of(path).close()
    server.close()


def test_directory_that_is_missing_is_named(tmp_path):
    assert "No such file" in refused("--socket", tmp_path / "no" / "socket")


def test_dead_socket_of_another_user_is_left_alone(path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a socket of another user")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    os.chown(path, 12345, 12345)
    assert "user 12345" in refused("--socket", path)
    assert path.exists()


def test_of_many_that_start_at_once_one_gets_the_path(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    def start():
        return subprocess.Popen([NET_SERVER, "--socket", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda _: start(), range(8)))
    ports = [one.stdout.readline() for one in started]
    living = [one for one, port in zip(started, ports, strict=True) if port]
    assert len(living) == 1, [one.stderr.read() for one in started if one not in living]
    client_of(path).close()
    for one in started:
        one.terminate()
        one.communicate(timeout=30)
    assert os.listdir(path.parent) == []


def test_path_that_another_took_over_is_not_removed_at_the_end(path):
    server = NetServer("--socket", path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        server.close()
        assert path.exists()


def test_peer_is_known(server, path):
    client = client_of(path)
    client.send(b"x")
    stats = wait_until(lambda: server.stats() if server.stats()["client_bytes"] else None, "the byte")
    assert (stats["client_uid"], stats["client_pid"], stats["client_pidfd_good"]) == (os.geteuid(), os.getpid(), 1)
    client.close()


def test_one_descriptor_is_taken_close_on_exec_and_others_are_closed(server, path):
    held = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    client = client_of(path)
    with open("/dev/null", "rb") as null:
        for count in (1, 16, 3):
            rights = array.array("i", [null.fileno()] * count)
            client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            client.send(b"y")
    stats = wait_until(lambda: server.stats() if server.stats()["client_bytes"] == 6 else None, "the bytes")
    assert (stats["client_fds"], stats["client_fds_without_cloexec"], stats["clients_extra_fds"]) == (3, 0, 17)
    client.close()
    wait_until(lambda: server.stats()["ended_by_peer"] == 1, "the end")
    wait_until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= held + 1, "all descriptors to be closed")


def test_more_descriptors_than_are_looked_at_are_closed_by_the_kernel(server, path):
    held = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    client = client_of(path)
    with open("/dev/null", "rb") as null:
        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null.fileno()] * 250))])
    client.close()
    wait_until(lambda: server.stats()["ended_by_peer"] == 1, "the end")
    wait_until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= held + 1, "all descriptors to be closed")


def test_user_of_the_listener_cuts_a_client_off(server, path):
    client, other = client_of(path), client_of(path)
    client.send(b"cut")
    assert client.recv(1) == b""
    other.send(b"still here")
    wait_until(lambda: server.stats()["client_bytes"] == 13, "the other one's bytes")
    assert server.stats()["ended_by_user"] == 1
    for one in (client, other):
        one.close()


def test_much_data_of_one_client_lets_others_have_their_turn(server, path):
    client = client_of(path)
    for _ in range(200):
        client.sendall(b"z" * 100_000)
        assert server.get("/hello").status == 200
    wait_until(lambda: server.stats()["client_bytes"] == 20_000_000, "all bytes")
    client.close()


def test_thousands_of_clients_connect_and_go(server, path):
    clients = [client_of(path) for _ in range(3000)]
    wait_until(lambda: server.stats()["clients"] == 3000, "the clients")
    for client in clients:
        client.close()
    wait_until(lambda: server.stats()["clients"] == 0, "their end")


def test_http_over_the_socket_knows_the_user(path):
    server = NetServer("--http-socket", path)
    done = subprocess.run(["/usr/bin/python3", "-c", f"""
import socket
s = socket.socket(socket.AF_UNIX)
s.connect({str(path)!r})
s.sendall(b"GET /echo HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
while data := s.recv(65536):
    print(data.decode())
"""], capture_output=True, text=True, check=True)
    assert f'"unix":true,"uid":{os.geteuid()}' in done.stdout
    server.close()
