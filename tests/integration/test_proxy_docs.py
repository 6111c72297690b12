# SPDX-License-Identifier: BSD-3-Clause
"""The pages about the proxy say what it does: every option, every path, every metric of its own."""
import re
import subprocess
from pathlib import Path

import pytest

from support.proxy import PROXY, Proxy

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def options():
    """(name, argument or None, help) of each option, from the program's own table."""
    text = subprocess.run([PROXY, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^ +(?:-\w, )?--([\w-]+)(?: (\S+))? {2,}(.*)$", text, re.MULTILINE)


def paths():
    """Every path that the proxy answers, from its tables."""
    found = set()
    for source in (ROOT / "src" / "proxy").glob("endpoints_*.c"):
        found.update(re.findall(r'^    \{"(/[^"]*)", ENDPOINT_', source.read_text(), re.MULTILINE))
    return found


def test_there_is_something_to_check():
    assert len(options()) > 25 and len(paths()) > 20


@pytest.mark.parametrize("page", ["proxy.md", "man/proxy_v2.8"])
def test_pages_name_every_option_and_no_other(page):
    text = (DOCS / page).read_text()
    if page.endswith(".md"):
        table = text[text.index("## Options"):text.index("## Asking")]
        named = set(re.findall(r"`--([a-z][\w-]+)", table))
    else:
        named = set(re.findall(r"^\.It Fl (?:\w , )?-([a-z][\w-]+)", text, re.MULTILINE))
    assert named == {name for name, _, _ in options()}


def test_the_page_has_the_defaults():
    text = (DOCS / "proxy.md").read_text()
    rows = [re.split(r" *(?<!\\)\| *", line) for line in text.splitlines() if line.startswith("| `-")]
    for name, _, words in options():
        default = re.search(r"\((\d+)\b", words)
        if default:
            row = next(row for row in rows if f"--{name} " in row[1])
            assert row[2] == default.group(1), name


def test_the_page_names_every_path():
    text = (DOCS / "proxy.md").read_text()
    missing = {path for path in paths() if not re.search(rf"`{re.escape(path)}[`?]", text)}
    assert not missing


def test_the_page_names_every_metric_of_the_proxy(tmp_path):
    proxy = Proxy(tmp_path)
    try:
        shown = set(re.findall(r"^# TYPE ((?:cicada_proxy|cicada_build|process)_\w+)", proxy.start().metrics(), re.MULTILINE))
    finally:
        proxy.close()
    named = set(re.findall(r"`((?:cicada_proxy|cicada_build|process)_\w+)", (DOCS / "metrics.md").read_text()))
    assert len(shown) > 30 and shown <= named, shown - named
