# SPDX-License-Identifier: BSD-3-Clause
"""Real network interfaces that change names while the service watches them."""
import os
import subprocess

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network interfaces in a name space")

IN_A_NAME_SPACE = ["unshare", "--net", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh"]
SEND = """
import socket, sys
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
frames.bind((sys.argv[1], 0))
for _ in range(int(sys.argv[2])):
    frames.send(bytes(12) + b"\\x88\\xb5" + bytes(1400))
"""
MUCH_BYTES = 1400 * 1000


@pytest.fixture
def names(service):
    """A service in a network name space of its own with two pairs of interfaces, and a way to run commands there."""
    one = service(command=IN_A_NAME_SPACE, DFTRACER_TRACE_INTERVAL_MS=200)
    running = one.run()
    one.wait_for_ticks(2)

    def inside(*words, **kwargs):
        subprocess.run(["nsenter", "--net", "--target", str(running.pid), *map(str, words)], check=True, capture_output=True,
                       **kwargs)

    for name, peer in [("busy", "busy-peer"), ("calm", "calm-peer")]:
        inside("ip", "link", "add", name, "type", "veth", "peer", "name", peer)
        inside("ip", "link", "set", name, "up")
        inside("ip", "link", "set", peer, "up")
    inside("python3", "-c", SEND, "busy", 1000)
    one.wait_for("net-busy")
    return one, inside


def rename(inside, *pairs):
    """By one process: so fast that hardly a tick sees what is in between."""
    lines = [f"link set {name} down\nlink set {name} name {new}\nlink set {new} up\n" for name, new in pairs]
    inside("ip", "-batch", "-", input="".join(lines).encode())


def sent(trace, name):
    """Bytes sent in each tick."""
    return [event["args"].get("bytes_sent", 0) for event in trace.events if event["name"] == f"net-{name}"]


def test_two_interfaces_that_swap_names_make_no_traffic(names):
    one, inside = names
    ticks = len(sent(one.so_far(), "calm"))
    one.wait_for("net-calm", count=ticks + 2)
    rename(inside, ("busy", "other"), ("calm", "busy"), ("other", "calm"))
    inside("python3", "-c", SEND, "calm", 10)
    ticks = len(sent(one.so_far(), "calm"))
    one.wait_for("net-calm", count=ticks + 5)
    assert max(sent(one.so_far(), "calm")) < MUCH_BYTES / 2
    assert sum(sent(one.so_far(), "busy")) < 2 * MUCH_BYTES


def test_what_is_sent_under_a_new_name_counts_there(names):
    one, inside = names
    rename(inside, ("busy", "new"))
    one.wait_for("net-new", count=3)
    inside("python3", "-c", SEND, "new", 100)
    ticks = len(sent(one.so_far(), "new"))
    one.wait_for("net-new", count=ticks + 5)
    assert 100 * 1400 <= sum(sent(one.so_far(), "new")) < MUCH_BYTES / 2
