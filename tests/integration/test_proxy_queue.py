# SPDX-License-Identifier: BSD-3-Clause
"""/queue/list of the real proxy, with a squeue of the test's and without one."""
import os
import shutil
import urllib.request

import pytest

from support.proxy import Proxy
from support.waiting import wait_until

SQUEUE = r"""#!/bin/sh
# Prints two jobs as squeue would for the format that it is given: literal characters stay, %x is a field.
format=$3
fill() { printf '%s' "$format" | sed "s/%A/$1/; s/%k/.\/app | tee x/; s/%[a-zA-Z]/v/g"; echo; }
fill 42
fill 43
"""


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def put_squeue(directory, script):
    directory.mkdir()
    path = directory / "squeue"
    path.write_text(script)
    path.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


def test_jobs_are_listed_by_their_id(proxy, tmp_path):
    proxy.start(PATH=put_squeue(tmp_path / "bin", SQUEUE))
    jobs = proxy.get("/queue/list")["jobs"]
    assert sorted(jobs) == ["42", "43"]
    assert jobs["42"]["COMMENT"] == "./app | tee x"
    assert jobs["42"]["STATE"] == "v"


def test_without_squeue_that_is_the_answer(proxy, tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "nsenter").symlink_to(shutil.which("nsenter"))  # which starts the proxy
    proxy.start(PATH=tmp_path / "bare")
    status, _, text = proxy.ask("/queue/list")
    assert status == 400 and "no squeue" in text


def test_a_squeue_that_hangs_holds_up_nothing(proxy, tmp_path):
    started = tmp_path / "started"
    proxy.start(PATH=put_squeue(tmp_path / "bin", f"#!/bin/sh\ntouch '{started}'\nexec sleep 1000\n"))
    connection = proxy.connect()
    with pytest.raises(OSError), urllib.request.urlopen(proxy.url("/queue/list"), timeout=0.5):
        pass
    wait_until(started.exists, "squeue to be started")
    connection.join("42")
    connection.declare_counter("work")
    connection.add("work", 3)
    proxy.wait_for_value("42", "work", 3)
    connection.close()
    proxy.end()


def test_models_are_not_computed_here(proxy):
    proxy.start()
    status, _, text = proxy.ask("/queue/model?job=42")
    assert status == 501 and "models" in text
