# SPDX-License-Identifier: BSD-3-Clause
"""verdict: tables of a benchmark, and its promises: kept or broken."""


def print_table(title, header, rows):
    """Columns as wide as they need to be; the first one to the left, numbers to the right."""
    cells = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


class Promises:
    def __init__(self):
        self.rows = []

    def at_least(self, name, value, limit, unit):
        self._add(name, value, f">= {limit:g} {unit}", unit, value is not None and value >= limit)

    def at_most(self, name, value, limit, unit):
        self._add(name, value, f"<= {limit:g} {unit}", unit, value is not None and value <= limit)

    def _add(self, name, value, limit, unit, is_kept):
        measured = "not measured" if value is None else f"{value:.3g} {unit}"
        self.rows.append((name, measured, limit, "kept" if is_kept else "BROKEN"))

    def conclude(self):
        """Prints every promise and returns the exit status: 0 when all were kept. What was not measured is broken."""
        print_table("Promises", ("promise", "measured", "limit", "verdict"), self.rows)
        broken = sum(row[-1] != "kept" for row in self.rows)
        print(f"\n{len(self.rows) - broken} kept, {broken} broken")
        return 1 if broken else 0
