"""How far a long statement is: a line on a terminal, or below the cell of a notebook. Never in a pipe.

    ━━━━━━━━━━━━━━━━╸───────────── 54% · 3.2 of 6.0 M rows · 0.9 of 12.8 GB memory

The thread that waits for the statement draws it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_STEPS = 30


def bar() -> Terminal | Notebook | Widget | None:
    """What draws the progress here; None if nobody sees it."""
    if _is_notebook():
        try:
            return Widget()
        except ImportError:
            return Notebook()
    stream = sys.stderr
    if stream is not None and hasattr(stream, "isatty") and stream.isatty() and os.environ.get("TERM") != "dumb":
        return Terminal()
    return None


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and getattr(running, "kernel", None) is not None


def _short(number: float) -> str:
    for unit in ("", " k", " M", " G"):
        if number < 1000:
            return f"{number:.0f}" if unit == "" else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.1f} T"


def describe(
    seconds: float,
    rows: tuple[int, int],
    read: tuple[int, int],
    written: int,
    memory: tuple[int, int],
) -> tuple[float | None, str]:
    """The share that is done, as far as it is known, and the rest in words."""
    parts = []
    shares = []
    for (done, total), unit in ((read, "B"), (rows, "rows")):
        if total > 0:
            shares.append(done / total)
            parts.append(f"{_short(done)} of {_short(total)} {unit}")
    if written > 0:
        parts.append(f"{_short(written)} rows written")
    share = min(shares) if shares else None
    if share and share > 0.01:
        parts.append(f"{seconds / share - seconds:.0f} s left")
    else:
        parts.append(f"{seconds:.0f} s")
    parts.append(f"{memory[0] / 1e9:.1f} of {memory[1] / 1e9:.1f} GB memory")
    return share, " · ".join(parts)


def _line(share: float | None, words: str) -> str:
    if share is None:
        return words
    full = int(share * _STEPS)
    line = "━" * full + "╸" * (full < _STEPS) + "─" * max(0, _STEPS - full - 1)
    # Rounded down: what works is not done.
    return f"{line} {int(share * 100)}% · {words}"


class Terminal:
    """One line, drawn over itself."""

    def draw(self, *numbers: Any) -> None:
        # Some terminals do not know how wide they are, and say 0.
        columns = (os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0) or 80
        sys.stderr.write("\r\x1b[K" + _line(*describe(*numbers))[: columns - 1])
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class Notebook:
    """A line of text below the cell."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def draw(self, *numbers: Any) -> None:
        self._handle.update({"text/plain": _line(*describe(*numbers))}, raw=True)

    def close(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)


class Widget:
    """A bar of ipywidgets below the cell."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._bar = ipywidgets.FloatProgress(min=0.0, max=1.0)
        self._words = ipywidgets.Label()
        self._box = ipywidgets.HBox([self._bar, self._words])
        display(self._box)

    def draw(self, *numbers: Any) -> None:
        share, words = describe(*numbers)
        self._bar.value = share or 0.0
        self._words.value = words

    def close(self) -> None:
        self._box.close()
