# SPDX-License-Identifier: BSD-3-Clause
""".ci/run sums up what bootstrap, lint and test say, and fails on a skip that nobody has allowed."""

import pytest

RESULTS = "unit\tpassed\ta: one\t\nunit\tskipped\ta: two\tno device\n"


@pytest.fixture
def ci(checkout):
    checkout.copy(".ci/run")
    checkout.write(".ci/allowed-skips", "# pattern, tab, why\nunit: a: t*\tno device in the server's machines\n")
    return checkout


def run(ci, results=RESULTS, bootstrap=0, lint=0, test=0):
    ci.write("script/bootstrap", f"#!/bin/sh\nexit {bootstrap}\n", executable=True)
    ci.write("script/lint", f"#!/bin/sh\nexit {lint}\n", executable=True)
    text = f"mkdir -p build/test-results\nprintf '{results}' >build/test-results/results.tsv\n" if results is not None else ""
    ci.write("script/test", f"#!/bin/sh\n{text}exit {test}\n", executable=True)
    done = ci.run("bash", ".ci/run", env={"CI": "true"})
    return done.returncode, done.stdout.splitlines()[-1], done.stdout


def test_green_is_green(ci):
    assert run(ci)[:2] == (0, "1 passed, 0 failed, 1 skipped")


def test_skip_that_is_not_on_the_list_fails(ci):
    status, last, output = run(ci, RESULTS + "cluster\tskipped\tb: three\tno root\n")
    assert (status, last) == (1, "1 passed, 1 failed, 2 skipped")
    assert "cluster: b: three: no root" in output and "no device" not in output


def test_line_of_the_list_without_reason_allows_nothing(ci):
    ci.write(".ci/allowed-skips", "unit: a: t*\n")
    assert run(ci)[0] == 1


def test_failed_test_is_counted_once(ci):
    assert run(ci, RESULTS + "unit\tfailed\ta: three\twhy\n", test=1)[:2] == (1, "1 passed, 1 failed, 1 skipped")


@pytest.mark.parametrize("step", ["bootstrap", "lint", "test"])
def test_failed_step_fails(ci, step):
    status, last, output = run(ci, **{step: 1})
    assert (status, last) == (1, "1 passed, 1 failed, 1 skipped") and f"script/{step}" in output


def test_missing_and_stale_results_fail(ci):
    ci.write("build/test-results/results.tsv", RESULTS)
    assert run(ci, results=None)[:2] == (1, "0 passed, 1 failed, 0 skipped")
