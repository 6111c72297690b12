# SPDX-License-Identifier: BSD-3-Clause
"""Alarms: raised, cleared, told and kept by the real proxy."""
import json
import urllib.parse

import pytest

from support.peers import Peer
from support.proxy import Proxy
from support.waiting import wait_until

QUIET = {"name": "My \"Alarm\"", "target": "main", "metric": "level", "operation": ">", "value": 33}


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


@pytest.fixture
def client(proxy):
    """Sets the gauge `level`; connects again when the proxy is another one."""
    class Client:
        def __init__(self):
            self.connection = None

        def set(self, value):
            if self.connection is None:
                self.connection = proxy.connect()
                self.connection.join("42")
                self.connection.declare_gauge("level")
            self.connection.set("level", value)

        def leave(self):
            self.connection.close()
            self.connection = None

    one = Client()
    yield one
    if one.connection is not None:
        one.leave()


def add(proxy, **fields):
    status, _, text = proxy.ask("/alarms/add", body={**QUIET, **fields})
    return status, json.loads(text)["operation"]


def wait_raised(proxy, target, names):
    return wait_until(lambda: [one["name"] for one in proxy.get("/alarms").get(target, [])] == names,
                      f"{names} of {target} to be raised: {proxy.get('/alarms')}")


def test_an_alarm_is_raised_and_cleared_and_said_once(proxy, client):
    proxy.start()
    assert add(proxy)[0] == 200
    client.set(51.5)
    wait_raised(proxy, "main", ["My \"Alarm\""])
    alarm = proxy.get("/alarms/list")["main"][0]
    assert alarm == {"name": "My \"Alarm\"", "metric": "level", "operator": {"More": 33}, "current": 51.5, "active": True,
                     "pretty": "My \"Alarm\" : level = 51.5 (Min: 51.5, Max : 51.5, Hits: 1, Total : 51.5) GAUGE > 33"}
    proxy.wait_for_value("main", 'cicada_alarm_active{job="main",name="My \\"Alarm\\""}', 1)
    client.set(3)
    wait_raised(proxy, "main", [])
    proxy.wait_for_value("main", 'cicada_alarm_active{job="main",name="My \\"Alarm\\""}', 0)
    assert proxy.log().count(" raised: ") == 1 and proxy.log().count(" cleared: ") == 1
    assert proxy.get("/alarms") == {}


def test_a_job_that_ends_clears_its_alarm_and_keeps_it(proxy, client):
    proxy.start()
    add(proxy, target="42", operation="=", value=7)
    client.set(7)
    wait_raised(proxy, "42", ["My \"Alarm\""])
    client.leave()
    wait_raised(proxy, "42", [])
    client.set(7)
    wait_raised(proxy, "42", ["My \"Alarm\""])


def test_alarms_are_kept_over_restarts_and_kills(proxy, client):
    proxy.start()
    for number in range(20):
        assert add(proxy, name=f"alarm {number}", value=number)[0] == 200
    proxy.end()
    proxy.start()
    wait_until(lambda: len(proxy.get("/alarms/list").get("main", [])) == 20, "all alarms")
    name = urllib.parse.quote("alarm 7")
    assert proxy.ask(f"/alarms/del?targetjob=main&name={name}")[0] == 200
    assert proxy.ask("/alarms/del", body={"target": "main", "name": "alarm 8"})[0] == 200
    kept = next(proxy.prefix.glob("nodes/*/alarms.json"))
    wait_until(lambda: len(json.loads(kept.read_text())["alarms"]) == 18, "the file")
    proxy.kill()
    proxy.start()
    wait_until(lambda: len(proxy.get("/alarms/list").get("main", [])) == 18, "all alarms but two")
    client.set(100)
    wait_until(lambda: len(proxy.get("/alarms").get("main", [])) == 18, "all to be raised")


def test_a_broken_file_is_set_aside_and_named(proxy):
    proxy.start()
    add(proxy)
    proxy.end()
    kept = next(proxy.prefix.glob("nodes/*/alarms.json"))
    half = kept.read_text()[:20]
    kept.write_text(half)
    proxy.start()
    wait_until(lambda: kept.with_name("alarms.json.broken").exists(), "the broken file")
    assert kept.with_name("alarms.json.broken").read_text() == half
    assert f"{kept}' set aside" in proxy.log()
    assert proxy.get("/alarms/list") == {}


@pytest.mark.parametrize("fields, word", [
    ({"name": ""}, "name"), ({"name": "x" * 300}, "name"), ({"name": "a\nb"}, "name"), ({"operation": "!="}, "operation"),
    ({"value": "33"}, "value"), ({"value": None}, "value"), ({"metric": ""}, "metric"), ({"target": 7}, "target")])
def test_what_makes_no_sense_is_refused(proxy, fields, word):
    proxy.start()
    status, why = add(proxy, **fields)
    assert status == 400 and word in why
    assert proxy.get("/alarms/list") == {}


def test_a_second_of_one_name_and_strangers_are_refused(proxy):
    proxy.start()
    assert add(proxy)[0] == 200
    status, why = add(proxy, value=1)
    assert status == 400 and "already" in why
    assert proxy.ask("/alarms/add", body=QUIET, headers={"Origin": "http://elsewhere"})[0] == 403
    assert proxy.ask("/alarms/del?targetjob=main&name=x", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert proxy.ask("/alarms/del?targetjob=main&name=nobody")[0] == 400
    assert proxy.ask("/alarms/add", body=None, method="POST")[0] == 400
    assert proxy.get("/alarms/list")["main"][0]["operator"] == {"More": 33}


def test_a_command_is_run_and_one_that_hangs_holds_up_nothing(proxy, client, tmp_path):
    told = tmp_path / "told"
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\necho \"$1 $CICADA_ALARM_NAME $CICADA_ALARM_VALUE\" >> '{told}'\nexec sleep 1000\n")
    command.chmod(0o755)
    proxy.start("--alarm-command", command)
    add(proxy, name="$(rm -r /nothing)")
    client.set(51.5)
    wait_until(told.exists, "the command")
    client.set(1)
    wait_until(lambda: told.read_text().splitlines() == ["raised $(rm -r /nothing) 51.5", "cleared $(rm -r /nothing) 1"],
               "both to be told")
    proxy.wait_for_value("main", "level", 1)
    proxy.end()  # it doesn't wait for them


def test_a_command_that_is_not_there_is_said(proxy, client):
    proxy.start("--alarm-command", "/nowhere/command")
    add(proxy)
    client.set(51.5)
    wait_until(lambda: "/nowhere/command" in proxy.log(), "a word in the log")


def test_a_webhook_is_told_also_when_it_was_away(proxy, client):
    receiver = Peer()
    receiver.status = 503
    proxy.start("--alarm-webhook", f"http://{receiver.address}/hook")
    add(proxy)
    client.set(51.5)
    wait_until(lambda: receiver.posted, "the first try")
    receiver.status = 200
    wait_until(lambda: len(receiver.posted) > 1, "the second")
    alert = json.loads(receiver.posted[1])[0]
    assert alert["labels"]["alertname"] == "My \"Alarm\"" and alert["labels"]["job"] == "main"
    assert "endsAt" not in alert and alert["startsAt"].endswith("Z")
    client.set(1)
    wait_until(lambda: "endsAt" in receiver.posted[-1], "the end")
    proxy.end()
    receiver.close()


def test_a_webhook_that_is_no_url_is_refused_at_the_start(proxy):
    assert "ftp://x" in proxy.refusal("--alarm-webhook", "ftp://x")
