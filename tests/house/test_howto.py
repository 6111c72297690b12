# SPDX-License-Identifier: BSD-3-Clause
"""The pieces of code in docs/howto/ are those of the files that they are said to be from."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in (ROOT / "docs/howto").glob("*.md") if page.name != "README.md")
SOURCE = re.compile(r"<!-- from (\S+) -->")


def pieces(text):
    """Yields (source, code) for each fenced block; the source is None where no comment stands right above it."""
    source, code = None, None
    for line in text.splitlines():
        if code is not None:
            if line.startswith("```"):
                yield source, "\n".join(code)
                source, code = None, None
            else:
                code.append(line)
        elif line.startswith("```"):
            code = []
        else:
            named = SOURCE.fullmatch(line)
            source = named.group(1) if named else None


def missing(text, root):
    """What a page shows and its source doesn't have, as lines for a person."""
    faults = []
    for source, code in pieces(text):
        if source is None:
            continue
        file = root / source
        if not file.is_file():
            faults.append(f"{source}: no such file")
        elif f"\n{code}\n" not in "\n" + file.read_text():
            faults.append(f"{source} doesn't have:\n{code}")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_that_of_the_source(page):
    text = page.read_text()
    assert any(source for source, _ in pieces(text)), "no piece says where it is from"
    assert missing(text, ROOT) == []


def test_change_of_the_source_is_noticed(tmp_path):
    page = "Look:\n\n<!-- from a.c -->\n```c\nint one;\nint two;\n```\n\n```sh\nanything\n```\n"
    assert missing(page, tmp_path) == ["a.c: no such file"]
    (tmp_path / "a.c").write_text("int zero;\nint one;\nint two;\n")
    assert missing(page, tmp_path) == []
    (tmp_path / "a.c").write_text("int one;\nint two2;\n")
    assert missing(page, tmp_path) == ["a.c doesn't have:\nint one;\nint two;"]
