# SPDX-License-Identifier: BSD-3-Clause
"""What tools/minicluster claims of its hosts: without it the other tests of this folder would prove nothing."""
import socket
import subprocess
from pathlib import Path

import pytest
from cluster import Cluster, run
from support.waiting import wait_until


def hears(cluster, host, peer):
    return cluster.exec(host, "ping", "-nqc1", "-W1", peer).status == 0


def round_trip_ms(cluster, host, peer):
    said = cluster.exec(host, "ping", "-nqc5", "-i0.2", "-W2", peer).ok().text
    return float(said.rsplit("= ", 1)[1].split("/")[1])


def leftovers(cluster):
    """What a cluster could leave on the machine. Another may run beside it."""
    links = sorted(line.split()[0] for line in run(["ip", "-br", "link"]).ok().text.splitlines())
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/*{cluster.state.name}")]
    return links, groups, cluster.state.exists()


def test_hosts_have_names_and_identities_of_their_own(hosts):
    for question in "hostname", "cat /proc/sys/kernel/random/boot_id", "cat /etc/machine-id", "hostname -I":
        answers = {hosts.exec(host, "sh", "-c", question).ok().text for host in hosts.hosts}
        assert len(answers) == 4, question


def test_hosts_have_directories_of_their_own_and_one_in_common(hosts):
    private = "/tmp", "/var/tmp", "/run", "/dev/shm", "/var/local"
    for where in *private, hosts.shared:
        hosts.exec("n1", "touch", f"{where}/made-on-n1").ok()
    assert hosts.exec("n2", "test", "-e", f"{hosts.shared}/made-on-n1").status == 0
    for where in private:
        assert hosts.exec("n2", "test", "-e", f"{where}/made-on-n1").status == 1, where


def test_hosts_see_only_processes_of_their_own(hosts):
    with hosts.start("n1", "sleep", "61234") as sleeping:
        wait_until(lambda: hosts.exec("n1", "pgrep", "-f", "^sleep 61234").status == 0, "the process on n1")
        assert hosts.exec("n2", "pgrep", "-f", "^sleep 61234").status == 1
        sleeping.kill()  # ends what it has started, too
        wait_until(lambda: hosts.exec("n1", "pgrep", "-f", "^sleep 61234").status == 1, "its end")


def test_exit_status_of_a_command_is_told(hosts):
    assert hosts.exec("n1", "sh", "-c", "exit 7").status == 7


@pytest.mark.parametrize("how", ["cut", "drop"])
def test_host_off_the_network_is_not_heard_until_healed(hosts, how):
    assert hears(hosts, "n1", "n2")
    hosts.tool("minicluster", how, "n2").ok()
    assert not hears(hosts, "n1", "n2")
    hosts.tool("minicluster", "heal", "n2").ok()
    assert hears(hosts, "n1", "n2")


def test_parted_hosts_hear_all_but_each_other(hosts):
    hosts.tool("minicluster", "part", "n1", "n2").ok()
    assert not hears(hosts, "n1", "n2")
    assert hears(hosts, "n1", "n3") and hears(hosts, "n3", "n2")
    hosts.tool("minicluster", "heal", "n2").ok()
    assert hears(hosts, "n1", "n2")


def test_delay_counts_in_each_direction(hosts):
    hosts.tool("minicluster", "delay", "n2", "50ms").ok()
    assert round_trip_ms(hosts, "n1", "n2") > 99
    hosts.tool("minicluster", "heal", "n2").ok()
    assert round_trip_ms(hosts, "n1", "n2") < 50


def test_frozen_host_answers_pings_and_nothing_else(hosts):
    with hosts.start("n2", "sh", "-c", "while sleep 0.05; do date +%N >/var/local/beat; done") as beating:
        beat = hosts.state / "disk" / "n2" / "beat"
        wait_until(beat.exists, "a beat")
        hosts.tool("minicluster", "freeze", "n2").ok()
        assert hears(hosts, "n1", "n2")
        before = beat.read_text()
        hosts.exec("n1", "sleep", "0.3").ok()
        assert beat.read_text() == before
        hosts.tool("minicluster", "thaw", "n2").ok()
        wait_until(lambda: beat.read_text() != before, "beats go on")
        beating.kill()


def test_killed_host_falls_silent_and_its_peers_hear_no_end(hosts):
    """As at a power cut, and unlike the death of a process: no FIN, no RST."""
    server = "import socket; s = socket.create_server(('', 8000)); c = s.accept()[0]; c.recv(1); s.accept()"
    client = ("import socket, select, sys; s = socket.create_connection(('n2', 8000)); s.send(b'x');"
              "print('connected', flush=True); sys.stdin.readline(); print(bool(select.select([s], [], [], 0)[0]))")
    with hosts.start("n2", "/usr/bin/python3", "-c", server) as serving:
        wait_until(lambda: "8000" in hosts.exec("n2", "ss", "-ltn").text, "the server")
        with subprocess.Popen(hosts.command("n1", "/usr/bin/python3", "-c", client), env=hosts.env, cwd="/", text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asking:
            assert asking.stdout.readline() == "connected\n"
            hosts.kill("n2")
            serving.wait(timeout=10)
            assert asking.communicate("\n", timeout=10)[0] == "False\n"
    assert not hears(hosts, "n1", "n2")


def test_booted_host_has_its_disk_and_nothing_else(hosts):
    hosts.exec("n2", "touch", "/tmp/gone", "/var/local/stays").ok()
    boot_id = hosts.exec("n2", "cat", "/proc/sys/kernel/random/boot_id").ok().text
    hosts.kill("n2")
    hosts.tool("minicluster", "boot", "n2").ok()
    assert hosts.exec("n2", "ls", "/tmp").ok().text == ""
    assert "stays" in hosts.exec("n2", "ls", "/var/local").ok().text
    assert hosts.exec("n2", "cat", "/proc/sys/kernel/random/boot_id").ok().text != boot_id
    assert hears(hosts, "n1", "n2")


def test_cluster_leaves_nothing_behind():
    second = Cluster("second", 2)
    before = leftovers(second)
    try:
        second.up()
        assert leftovers(second) != before
        assert hears(second, "n1", "n2")
        with socket.create_server(("127.0.0.1", 0)) as ours:  # the outer network is another
            connect = f"import socket; socket.create_connection(('127.0.0.1', {ours.getsockname()[1]}))"
            assert "refused" in second.exec("n1", "/usr/bin/python3", "-c", connect).text
    finally:
        second.down()
    assert leftovers(second) == before
