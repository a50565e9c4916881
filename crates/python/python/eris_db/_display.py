"""Results as tables, in text and in HTML. Only the rows that are shown are fetched."""

from __future__ import annotations

import html as _html
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Result

ROWS = 20
"""Rows that are shown."""
WIDTH = 40
"""Characters of a value that are shown."""


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = str(value)
    # Control characters would break the lines.
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return shown if len(shown) <= WIDTH else shown[: WIDTH - 1] + "…"


def _width(shown: str) -> int:
    if shown.isascii():
        return len(shown)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in shown)
    return len(shown) + wide - sum(unicodedata.combining(c) != 0 for c in shown)


def _is_number(value: Any) -> bool:
    return not isinstance(value, (str, bytes, bool, list, dict))


def text(result: Result) -> str:
    """The first rows between lines."""
    rows, more = result._peek(ROWS)
    names = [_cell(name) for name in result.columns]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(names, *cells, strict=True)]
    right = [all(_is_number(row[at]) for row in rows if row[at] is not None) for at in range(len(widths))]

    def line(values: list[str]) -> str:
        parts = []
        for value, width, at_right in zip(values, widths, right, strict=True):
            blanks = " " * (width - _width(value))
            parts.append(blanks + value if at_right else value + blanks)
        return "│ " + " │ ".join(parts) + " │"

    def rule(left: str, middle: str, end: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + end

    lines = [rule("┌", "┬", "┐"), line(names), rule("├", "┼", "┤")]
    lines += map(line, cells)
    lines.append(rule("└", "┴", "┘"))
    lines.append(f"the first {ROWS} rows" if more else f"{len(rows)} row{'' if len(rows) == 1 else 's'}")
    return "\n".join(lines)


def html(result: Result) -> str:
    """The same as a table of HTML."""
    rows, more = result._peek(ROWS)
    head = "".join(f"<th>{_html.escape(_cell(name))}</th>" for name in result.columns)
    body = []
    for row in rows:
        cells = []
        for value in row:
            align = "right" if value is not None and _is_number(value) else "left"
            shown = "<i>NULL</i>" if value is None else _html.escape(_cell(value))
            cells.append(f'<td style="text-align: {align}">{shown}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    count = f"the first {ROWS} rows" if more else f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{count}</p>"
