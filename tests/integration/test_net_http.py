# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP server as clients see it: answers, streams, connections that are kept, and forms that are refused."""
import gzip

import pytest

from support.net import NetServer
from support.waiting import wait_until


@pytest.fixture
def server():
    one = NetServer("--sweep-ms", 50)
    yield one
    one.close()


def test_path_and_parameters_are_decoded_once(server):
    echo = server.get("/echo/a%2520b%2Fc?x=1&y=a+b%26c&z&%6eame=100%&u=%C3%A9").json()
    assert echo["path"] == "/echo/a%20b/c"
    assert echo["params"] == [["x", "1"], ["y", "a b&c"], ["z", ""], ["name", "100%"], ["u", "é"]]


def test_answers_forbid_caches_guessing_and_frames(server):
    headers = server.get("/hello").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


def test_body_arrives_whole_with_a_length_and_in_chunks(server):
    assert server.get("/echo", method="POST", body=b"some body").json()["body"] == "some body"
    connection = server.connect()
    connection.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n5\r\n body\r\n0\r\n\r\n")
    assert connection.read_answer().json()["body"] == "some body"
    connection.close()


def test_head_has_the_headers_of_get_and_no_body(server):
    connection = server.connect()
    connection.send_request("/big?bytes=500", method="HEAD")
    answer = connection.read_answer(has_body=False)
    assert (answer.status, answer.headers["content-length"]) == (200, "500")
    connection.send_request("/stream?n=2", method="HEAD")
    assert connection.read_answer(has_body=False).status == 200
    connection.send_request("/hello")  # what follows is the next answer, and nothing of the bodies
    assert connection.read_answer().json() == {"hello": True}
    connection.close()
    assert server.stats()["streams_ended"] == 1


@pytest.mark.parametrize("length", [1024, 50_000, 128 << 10, (128 << 10) + 1, 5_000_000])
def test_large_answers_are_compressed_when_the_client_accepts_it(server, length):
    plain = server.get(f"/big?bytes={length}")
    assert "content-encoding" not in plain.headers and len(plain.body) == length
    packed = server.get(f"/big?bytes={length}", "Accept-Encoding: br, gzip;q=0.8")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < length / 2 and gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-type"] == "text/plain" and packed.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("target, accepted", [("/big?bytes=1023", "gzip"), ("/big?bytes=9000", "gzip;q=0"), ("/big?bytes=9000", "br")])
def test_small_answers_and_other_codings_stay_plain(server, target, accepted):
    assert "content-encoding" not in server.get(target, f"Accept-Encoding: {accepted}").headers


def test_client_that_goes_during_compression_harms_nobody(server):
    for _ in range(10):
        connection = server.connect()
        connection.send_request("/big?bytes=9000000", "Accept-Encoding: gzip")
        connection.close()
    assert server.get("/hello").status == 200
    wait_until(lambda: server.stats()["connections"] <= 2, "the connections to end")


def test_requests_in_one_packet_are_answered_in_order(server):
    connection = server.connect()
    connection.send("".join(f"GET /echo?n={n} HTTP/1.1\r\nHost: x\r\n\r\n" for n in range(50)))
    for n in range(50):
        assert connection.read_answer().json()["params"] == [["n", str(n)]]
    connection.close()


def test_late_answer_does_not_hold_up_others(server):
    late = server.connect()
    late.send_request("/later?ms=300")
    assert server.get("/hello").status == 200
    assert late.read_answer().json() == {"hello": True}
    late.close()


def test_handler_is_told_when_the_client_goes_before_the_answer(server):
    connections = [server.connect() for _ in range(20)]
    for connection in connections:
        connection.send_request("/later?ms=600000")
    wait_until(lambda: server.stats()["requests"] >= 20, "the requests")
    for connection in connections:
        connection.close()
    wait_until(lambda: server.stats()["gone"] == 20, "the handler to be told")
    wait_until(lambda: server.stats()["connections"] <= 2, "the connections to end")


def test_events_arrive_one_by_one(server):
    connection = server.connect()
    connection.send_request("/stream?n=3&ms=20")
    for n in (3, 2, 1):
        connection.read_until(b"data: %d\n\n" % n)
    connection.read_until(b"0\r\n\r\n")
    connection.send_request("/hello")  # the connection goes on
    assert connection.read_answer().status == 200
    connection.close()
    assert server.stats()["streams_ended"] == 1


def test_stream_ends_when_its_client_goes_while_it_waits(server):
    connection = server.connect()
    connection.send_request("/stream?n=1000&ms=600000")
    connection.read_until(b"data: 1000\n\n")
    connection.close()
    wait_until(lambda: server.stats()["streams_ended"] == 1, "the stream's end")


def test_server_that_ends_lets_go_of_all(server):
    connections = []
    for target in ("/later?ms=600000", "/stream?n=9&ms=600000", "/stream?n=0", "/big?bytes=50000000"):
        connections.append(server.connect())
        connections[-1].send_request(target)
    wait_until(lambda: server.stats()["requests"] >= 4, "the requests")
    server.close()  # within its deadline, without a leak
    for connection in connections:
        connection.close()


def test_target_of_twelve_kilobytes_goes_through(server):
    assert server.get("/echo?x=" + "y" * 12000).json()["params"] == [["x", "y" * 12000]]


@pytest.mark.parametrize("target, why", [
    ("/hello%00x", "NUL"), ("/hello?a=%00", "NUL"), ("/hel%zzlo", "'%'"), ("/hello%", "'%'"), ("http://x/hello", "no path"),
    ("*", "no path"), ("/hello?" + "a&" * 65, "parameters"), ("/he\x7fllo", "control")], ids=range(8))
def test_bad_targets_are_refused_with_a_reason(server, target, why):
    answer = server.get(target)
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert why in answer.why() and answer.json()["success"] is False


SMUGGLING = {
    "two Host": "Host: x\r\nHost: y\r\n",
    "two equal Host": "Host: x\r\nHost: x\r\n",
    "no Host": "X: y\r\n",
    "two Content-Length": "Host: x\r\nContent-Length: 0\r\nContent-Length: {n}\r\n",
    "two equal Content-Length": "Host: x\r\nContent-Length: {n}\r\nContent-Length: {n}\r\n",
    "length and chunks": "Host: x\r\nContent-Length: {n}\r\nTransfer-Encoding: chunked\r\n",
    "chunks and length": "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: {n}\r\n",
    "blank before the colon": "Host: x\r\nContent-Length : {n}\r\n",
    "tab before the colon": "Host: x\r\nContent-Length\t: {n}\r\n",
    "length with a sign": "Host: x\r\nContent-Length: +{n}\r\n",
    "negative length": "Host: x\r\nContent-Length: -1\r\n",
    "list of lengths": "Host: x\r\nContent-Length: {n}, {n}\r\n",
    "hexadecimal length": "Host: x\r\nContent-Length: 0x10\r\n",
    "empty length": "Host: x\r\nContent-Length:\r\n",
    "length beyond 64 bits": "Host: x\r\nContent-Length: 18446744073709551619\r\n",
    "unknown encoding": "Host: x\r\nTransfer-Encoding: gzip\r\n",
    "encoding in a list": "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n",
    "encoding twice": "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "encoding with a word before": "Host: x\r\nTransfer-Encoding: xchunked\r\n",
    "encoding with a vertical tab": "Host: x\r\nTransfer-Encoding: \x0bchunked\r\n",
    "control character in a value": "Host: x\r\nX-Probe: a\x01b\r\n",
    "delete in a value": "Host: x\r\nX-Probe: a\x7fb\r\n",
    "name with a bracket": "Host: x\r\nX(Probe: a\r\n",
}


@pytest.mark.parametrize("form", SMUGGLING)
def test_request_that_could_be_read_in_two_ways_is_refused_and_hides_no_other(server, form):
    hidden = "GET /mark HTTP/1.1\r\nHost: x\r\n\r\n"
    connection = server.connect()
    connection.send("POST /mark HTTP/1.1\r\n" + SMUGGLING[form].format(n=len(hidden)) + "\r\n" + hidden)
    said = connection.read_to_end()
    connection.close()
    assert said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")) and b"200 OK" not in said
    assert server.stats()["marks"] == 0, "the request or the one within was executed"


def test_chunks_of_a_bad_form_execute_nothing(server):
    for chunk in ("0x3\r\nabc\r\n0\r\n\r\n", "-1\r\nabc\r\n0\r\n\r\n", "zz\r\n", "ffffffffffffffffff\r\nabc"):
        connection = server.connect()
        connection.send("POST /mark HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
        connection.sock.shutdown(1)
        assert b"200 OK" not in connection.read_to_end(), chunk
        connection.close()
    assert server.stats()["marks"] == 0


def test_method_beyond_reason_is_refused(server):
    assert server.get("/mark", method="M" * 40).status == 400
    assert server.stats()["marks"] == 0


def test_body_over_the_limit_of_its_path_is_refused(server):
    for length, status in ((64 << 10, 200), ((64 << 10) + 1, 413), (2 << 20, 413)):
        connection = server.connect()
        connection.send(f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
        if status == 200 or length < 1 << 20:
            connection.send(b"x" * length)
        answer = connection.read_answer()
        assert answer.status == status, length
        connection.close()
    assert server.get("/echo/large", method="POST", body=b"x" * (1 << 20)).json()["length"] == 1 << 20


def test_chunked_body_over_the_limit_is_refused_too(server):
    connection = server.connect()
    connection.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    connection.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n" + b"1\r\nx\r\n0\r\n\r\n")
    assert connection.read_answer().status == 413
    connection.close()


def test_endless_body_is_cut_off(server):
    connection = server.connect()
    connection.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(1000):
            connection.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
    connection.close()
