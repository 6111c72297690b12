# SPDX-License-Identifier: BSD-3-Clause
"""The pages about the service say what the program does: every setting, every message, every exit status."""
import re
import subprocess
from pathlib import Path

import pytest

from support.service import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def options():
    """Variable (or None), keys and default of each setting, from the program's own table."""
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    for block in re.split(r"\n  (?=\S)", text[text.index("Variables, and keys"):])[1:]:
        name = block.split("\n", 1)[0].strip()
        keys = re.search(r"YAML: (.*)", block)
        default = re.search(r"; default '?([^'\n]*)'?", block)
        found.append((name if name.startswith("DFTRACER_") else None, keys.group(1).split(", ") if keys else [],
                      default.group(1) if default else ""))
    return found


@pytest.mark.parametrize("page", ["service.md", "man/dftracer_service.8"])
def test_pages_name_every_setting(page):
    text = (DOCS / page).read_text()
    found = options()
    assert len(found) > 25
    for variable, keys, _ in found:
        for word in filter(None, [variable, *keys]):
            assert re.search(rf"(?<![\w.]){re.escape(word)}(?![\w])", text), f"{page} does not name {word}"


def test_the_page_has_the_defaults():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (DOCS / "service.md").read_text().splitlines()
            if line.startswith("|")]
    for variable, _, default in options():
        if variable is None:
            continue
        row = next(row for row in rows if row[0] == f"`{variable}`")
        assert row[2] == default, f"{variable}: {row[2]} is not {default}"


def test_pages_name_no_setting_that_is_not_there():
    known = {variable for variable, _, _ in options()} | {"DFTRACER_CONFIGURATION"}
    for page in ("service.md", "troubleshooting.md", "man/dftracer_service.8"):
        named = set(re.findall(r"DFTRACER_[A-Z_]+", (DOCS / page).read_text())) - {"DFTRACER_SERVICE"}
        assert named <= known, f"{page}: {named - known}"


def sources():
    """The texts of all messages, with what differs from case to case as one character."""
    text = "".join(path.read_text() for path in sorted((ROOT / "src").glob("*/*.c")))
    text = re.sub(r"\"\s*(PRIu64|PRId64|CICADA_VERSION)?\s*\"", "", text)
    return re.sub(r"%(?:\.\*|\.\d)?(?:ll|z)?[a-zA-Z]?", "…", text)


def messages():
    return re.findall(r"^### `(.*)`$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("message", messages())
def test_messages_of_the_troubleshooting_page_are_the_programs(message):
    text = sources()
    # A message may be put together from several: what stands between quotes, colons and brackets is of one.
    parts = [part.strip() for part in re.split("[…':;()]", message) if len(part.strip()) > 3]
    assert parts
    for part in parts:
        assert part in text, f"no message of the program holds '{part}'"


def test_there_are_messages():
    assert len(messages()) > 40
