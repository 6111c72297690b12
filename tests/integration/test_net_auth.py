# SPDX-License-Identifier: BSD-3-Clause
"""Who may change something, asked as the programs of users, and the browsers of users, would ask."""
import hashlib
import hmac
import os
import secrets
import socket
import stat
import subprocess
import time

import pytest

from support.net import NET_SERVER, Connection, NetServer


@pytest.fixture
def token_path(tmp_path):
    return tmp_path / "token"


@pytest.fixture
def server(token_path, tmp_path):
    one = NetServer("--token", token_path, "--http-socket", tmp_path / "http")
    yield one
    one.close()


def signed(token, target, method="GET", body=b"", at=None, nonce=None):
    at = int(time.time() * 1000) if at is None else at
    nonce = secrets.token_hex(16) if nonce is None else nonce
    text = f"v1\n{method}\n{target}\n{hashlib.sha256(body).hexdigest()}\n{at}\n{nonce}\n"
    return f"X-Cicada-Auth: v1 {at} {nonce} {hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()}"


def test_token_is_made_once_and_only_ours_to_read(server, token_path):
    token = token_path.read_text()
    assert len(token) == 65 and stat.S_IMODE(token_path.stat().st_mode) == 0o600
    other = NetServer("--token", token_path)
    other.close()
    assert token_path.read_text() == token
    assert sorted(os.listdir(token_path.parent)) == ["http", "token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_token_that_others_can_use_is_refused(token_path, mode):
    token_path.write_text("t" * 40)
    token_path.chmod(mode)
    done = subprocess.run([NET_SERVER, "--token", token_path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "chmod 600" in done.stderr


def test_loopback_peer_of_the_same_user_may(server):
    assert server.get("/change").status == 200
    assert server.get("/change", f"Host: 127.0.0.1:{server.port}").status == 200


def test_same_user_over_ipv6_may():
    server = NetServer("--address", "::")
    for address in ("::1", "127.0.0.1"):
        connection = server.connect(address)
        connection.send_request("/change")
        assert connection.read_answer().status == 200, address
        connection.close()
    server.close()


OTHERS = {
    "another name of the host, without token": "Host: node7.cluster",
    "number of the host, without token": "Host: 10.0.0.7",
}


@pytest.mark.parametrize("case", OTHERS)
def test_same_user_must_ask_at_localhost(server, token_path, case):
    assert "localhost" in server.get("/change", OTHERS[case]).why()
    bearer = f"Authorization: Bearer {token_path.read_text().strip()}"
    assert server.get("/change", OTHERS[case], bearer).status == 200


FOREIGN = {
    "rebound name": ["Host: evil.example"],
    "name that only begins like ours": ["Host: localhost.evil.example"],
    "user in the host": ["Host: localhost@evil.example"],
    "page of another site": ["Origin: http://evil.example"],
    "page without a site": ["Origin: null"],
    "page of another port here": ["Host: localhost:1337", "Origin: http://localhost:8080"],
    "page of another scheme": ["Host: localhost:1337", "Origin: file://localhost:1337"],
    "link of another site": ["Referer: http://evil.example/page?http://localhost/"],
    "fetch across sites": ["Sec-Fetch-Site: cross-site"],
    "fetch of the same site, another origin": ["Sec-Fetch-Site: same-site"],
}


@pytest.mark.parametrize("case", FOREIGN)
@pytest.mark.parametrize("has_token", [False, True])
def test_pages_of_others_are_refused_whoever_asks(server, token_path, case, has_token):
    bearer = [f"Authorization: Bearer {token_path.read_text().strip()}"] if has_token else []
    answer = server.get("/change", *FOREIGN[case], *bearer)
    assert answer.status == 403 and answer.json()["success"] is False


def test_own_page_may(server):
    host = f"localhost:{server.port}"
    page = [f"Host: {host}", f"Origin: http://{host}", f"Referer: http://{host}/page?a=b", "Sec-Fetch-Site: same-origin"]
    assert server.get("/change", *page).status == 200


def as_user(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


ASK = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET /change HTTP/1.1\\r\\nHost: localhost\\r\\n" + sys.argv[2].encode() + b"Connection: close\\r\\n\\r\\n")
while data := s.recv(65536):
    sys.stdout.write(data.decode())
"""


def ask_as(uid, port, header=""):
    done = subprocess.run(["/usr/bin/python3", "-c", ASK, str(port), header], capture_output=True, text=True, check=True, **as_user(uid))
    return done.stdout


def test_another_user_needs_the_token(server, token_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: asks as another user")
    answer = ask_as(12345, server.port)
    assert " 403 " in answer and "not of user 12345" in answer
    assert " 200 " in ask_as(12345, server.port, f"Authorization: Bearer {token_path.read_text().strip()}\r\n")


def test_unix_socket_may_and_pages_of_others_may_not_even_there(server, tmp_path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(tmp_path / "http"))
    connection = Connection(client)
    connection.send_request("/change")
    assert connection.read_answer().status == 200
    connection.send_request("/change", "Host: evil.example")
    assert connection.read_answer().status == 403
    connection.close()


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer ", "Basic abc", "", "Bearer " + "x" * 64])
def test_wrong_token_is_refused_also_where_none_is_needed(server, given):
    assert server.get("/change", f"Authorization: {given}").status == 403


def test_signed_request_may_once(server, token_path):
    token = token_path.read_text().strip()
    header = signed(token, "/change?a=%20b")
    assert server.get("/change?a=%20b", header, "Host: node7.cluster").status == 200
    assert "before" in server.get("/change?a=%20b", header, "Host: node7.cluster").why()


@pytest.mark.parametrize("target, method, body", [("/change?b", "GET", b""), ("/change", "POST", b""), ("/change", "GET", b"x")])
def test_signature_covers_method_target_and_body(server, token_path, target, method, body):
    header = signed(token_path.read_text().strip(), "/change")
    answer = server.get(target, header, method=method, body=body)
    assert answer.status == 403 and "does not fit" in answer.why()


@pytest.mark.parametrize("shift_s", [-3600, -61, 61, 3600, 10 ** 9])
def test_signature_of_another_time_is_refused(server, token_path, shift_s):
    header = signed(token_path.read_text().strip(), "/change", at=int((time.time() + shift_s) * 1000))
    assert "clock" in server.get("/change", header).why()


@pytest.mark.parametrize("value", ["", "v1", "v2 1 2 3", "v1 -1 " + "0" * 32 + " " + "0" * 64, "v1 1 " + "0" * 31 + " " + "0" * 64])
def test_malformed_signature_is_refused(server, value):
    assert server.get("/change", f"X-Cicada-Auth: {value}").status == 403


def test_without_a_token_nobody_has_it():
    server = NetServer()
    for given in ("Authorization: Bearer ", "Authorization: Bearer x", signed("", "/change")):
        assert server.get("/change", given).status == 403
    server.close()
