# SPDX-License-Identifier: BSD-3-Clause
"""script/bench runs what it is told to and fails when a promise is broken."""

import pytest

PRESETS = '{"version": 3, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}]}'


@pytest.fixture
def project(checkout):
    checkout.copy("script")
    checkout.write("script/bootstrap", "#!/bin/sh\n", executable=True)
    checkout.write("CMakePresets.json", PRESETS)
    checkout.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(small NONE)\n")
    checkout.write("bench/kept/run", '#!/bin/sh\necho "kept in $CICADA_BUILD_DIR"\n', executable=True)
    return checkout


def test_promise_that_is_kept(project):
    done = project.run("script/bench")
    assert done.returncode == 0 and f"kept in {project.root}/build/release" in done.stdout
    assert done.stdout.splitlines()[-1] == "bench: all promises kept (kept)"


def test_broken_promise_fails_after_the_others_have_run(project):
    project.write("bench/broken/run", "#!/bin/sh\nexit 1\n", executable=True)
    done = project.run("script/bench")
    assert done.returncode == 1 and "kept in" in done.stdout
    assert done.stdout.splitlines()[-1] == "bench: promises broken by: broken"
    assert project.run("script/bench", "kept").returncode == 0


def test_options_go_to_each_program(project):
    project.write("bench/kept/run", '#!/bin/sh\necho "got $*"\n', executable=True)
    assert "got --quick" in project.run("script/bench", "kept", "--quick").stdout


def test_unknown_name_is_refused(project):
    done = project.run("script/bench", "nonsense")
    assert done.returncode == 2 and "bench/nonsense/run" in done.stderr


def test_failed_build_is_shown(project):
    project.write("CMakeLists.txt", 'cmake_minimum_required(VERSION 3.22)\nproject(small NONE)\nmessage(FATAL_ERROR "this is why")\n')
    done = project.run("script/bench")
    assert done.returncode == 1 and "this is why" in done.stdout
