# SPDX-License-Identifier: BSD-3-Clause
"""Runs the rules over the project's files. Called by script/lint."""

import argparse
import sys
import time
from pathlib import Path

import rules_c
import rules_compiler
import rules_text
from tree import Tree

RULES = {**rules_text.RULES, **rules_c.RULES, **rules_compiler.RULES}


def main():
    parser = argparse.ArgumentParser(prog="script/lint")
    parser.add_argument("--only", default="", help="rules, separated by commas")
    parser.add_argument("--list", action="store_true", help="shows the rules")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[3], help="another checkout")
    parser.add_argument("files", nargs="*", help="only these files")
    options = parser.parse_args()
    if options.list:
        for name, rule in RULES.items():
            print(f"{name:12} {rule.__doc__.splitlines()[0]}")
        return 0
    wanted = [name for name in options.only.split(",") if name] or list(RULES)
    unknown = [name for name in wanted if name not in RULES]
    if unknown:
        parser.error(f"no rule {', '.join(unknown)}; there are {', '.join(RULES)}")

    tree = Tree(options.root.resolve(), options.files)
    faults = 0
    started = time.monotonic()
    for name in wanted:
        for path, line, what in sorted(set(RULES[name](tree))):
            print(f"{name}: {path}:{line}: {what}", flush=True)
            faults += 1
    seconds = time.monotonic() - started
    print(f"lint: {faults or 'no'} fault{'' if faults == 1 else 's'}; "
          f"{len(wanted)} rules, {len(tree.files)} files, {seconds:.0f} s", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
