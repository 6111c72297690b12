# SPDX-License-Identifier: BSD-3-Clause
"""script/bootstrap with a dpkg and an apt that only pretend."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from conftest import Checkout

IS_ROOT = os.geteuid() == 0
# Says that everything asked for is installed, but for the packages in the file `missing`.
DPKG_QUERY = """#!/bin/bash
for name in "${@:4}"; do
    grep -qx "$name" "$STUBS/missing" || echo "installed $name"
done
"""
# Writes down how it was called and what the policy on services was; "installs" unless the file `broken` is there.
APT_GET = """#!/bin/bash
echo "$*" >>"$STUBS/calls"
cat /usr/sbin/policy-rc.d >"$STUBS/policy" 2>/dev/null
[[ ! -e $STUBS/broken ]] || exit 100
case " $* " in *" install "*) : >"$STUBS/missing" ;; esac
"""


@pytest.fixture
def machine():
    """A checkout that nobody's user can read, with stubs first in PATH."""
    folder = Path(tempfile.mkdtemp(prefix="cicada-bootstrap-"))
    folder.chmod(0o755)
    checkout = Checkout(folder / "check out")
    checkout.copy("script/bootstrap")
    checkout.write("stubs/dpkg-query", DPKG_QUERY, executable=True)
    checkout.write("stubs/apt-get", APT_GET, executable=True)
    checkout.write("stubs/missing", "")
    yield checkout
    shutil.rmtree(folder)


def bootstrap(machine, *arguments, prefix=()):
    stubs = machine.root / "stubs"
    return machine.run(*prefix, machine.root / "script/bootstrap", *arguments,
                       env={"PATH": f"{stubs}:{os.environ['PATH']}", "STUBS": str(stubs)})


def as_nobody():
    return ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if IS_ROOT else ()


def with_private_sbin(machine, policy=None):
    """The command's /usr/sbin is a folder of the test: apt's policy file there is not this machine's."""
    sbin = machine.root / "sbin"
    sbin.mkdir()
    if policy is not None:
        (sbin / "policy-rc.d").write_text(policy)
    return sbin, ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /usr/sbin && exec "$@"', sbin)


needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root: binds a folder over /usr/sbin")


def test_nothing_missing_says_nothing_and_calls_nobody(machine):
    done = bootstrap(machine, prefix=as_nobody())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (machine.root / "stubs/calls").exists()


def test_without_root_the_command_is_printed_and_nothing_installed(machine):
    machine.write("stubs/missing", "jq\nninja-build\n")
    done = bootstrap(machine, "--only", "build,test", prefix=as_nobody())
    assert done.returncode == 1
    assert "ninja-build" in done.stderr and "runs the build" in done.stderr
    assert f"{machine.root}/script/bootstrap --only build,test\n".replace("check out", "check\\ out") in done.stderr
    assert not (machine.root / "stubs/calls").exists()


def test_only_the_groups_that_were_asked_for_count(machine):
    machine.write("stubs/missing", "slurm-wlm\nclang-tidy\n")
    assert bootstrap(machine, "--only", "build,test", prefix=as_nobody()).returncode == 0
    for group, package in (("cluster", "slurm-wlm"), ("lint", "clang-tidy")):
        done = bootstrap(machine, f"--only={group}", prefix=as_nobody())
        assert done.returncode == 1 and package in done.stderr
    assert bootstrap(machine, prefix=as_nobody()).returncode == 1


def test_list_shows_what_is_missing_and_changes_nothing(machine):
    machine.write("stubs/missing", "jq\n")
    done = bootstrap(machine, "--list")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and not (machine.root / "stubs/calls").exists()
    assert [line.split()[1] for line in lines if line.startswith("missing")] == ["jq"]
    assert all(len(line.split()) > 3 for line in lines), "each row has a reason"


def test_unknown_group_and_argument_are_refused(machine):
    assert "'nonsense'" in bootstrap(machine, "--only", "build,nonsense").stderr
    assert bootstrap(machine, "--only").returncode == 2
    assert bootstrap(machine, "--nonsense").returncode == 2


def test_another_system_than_debian_is_told_what_it_needs(machine):
    (machine.root / "stubs/dpkg-query").unlink()
    tools = machine.root / "tools"
    tools.mkdir()
    for name in ("bash", "awk", "cat", "sed", "env", "dirname", "realpath"):
        (tools / name).symlink_to(shutil.which(name))
    done = machine.run(tools / "bash", machine.root / "script/bootstrap", env={"PATH": str(tools)})
    assert done.returncode == 1 and "not a Debian system" in done.stderr and "libuv1-dev" in done.stderr


@needs_root
@pytest.mark.parametrize("policy", [None, "#!/bin/sh\nexit 0\n"], ids=["no-policy", "own-policy"])
@pytest.mark.parametrize("is_broken", [False, True], ids=["apt-works", "apt-fails"])
def test_as_root_missing_packages_are_installed_and_no_service_starts(machine, policy, is_broken):
    machine.write("stubs/missing", "jq\nninja-build\n")
    if is_broken:
        machine.write("stubs/broken", "")
    sbin, prefix = with_private_sbin(machine, policy)
    done = bootstrap(machine, "--only", "build", prefix=prefix)
    calls = (machine.root / "stubs/calls").read_text().splitlines()
    assert calls[0].endswith(" update")
    assert "exit 101" in (machine.root / "stubs/policy").read_text()
    if is_broken:
        assert done.returncode != 0 and len(calls) == 1
    else:
        assert done.returncode == 0 and "install -y --no-install-recommends" in calls[1], done.stderr
        assert sorted(calls[1].split()[-2:]) == ["jq", "ninja-build"]
    left = {file.name: file.read_text() for file in sbin.iterdir()}
    assert left == ({} if policy is None else {"policy-rc.d": policy})


@needs_root
def test_policy_left_behind_by_a_killed_run_is_removed_by_the_next(machine):
    machine.write("stubs/missing", "jq\n")
    sbin, prefix = with_private_sbin(machine, "#!/bin/sh\n# made by script/bootstrap of Cicada\nexit 101\n")
    (sbin / "policy-rc.d.before-cicada").write_text("theirs")
    assert bootstrap(machine, "--only", "build", prefix=prefix).returncode == 0
    assert {file.name: file.read_text() for file in sbin.iterdir()} == {"policy-rc.d": "theirs"}
