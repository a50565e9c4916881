#!/usr/bin/env python3
"""Runs every command of the README's walk on real data and compares what it prints with what the README shows.

    ERIS=… tests/walk/walk.py [--write]

In the section's `console` blocks, `$ ` begins a command of the system's shell and `eris> ` a statement, which may go on in
lines that begin with `   …> `; the statements behind `$ eris` are one session. All other lines are output. `--write` puts
the outputs of this run into the README, to be looked through before they are committed.

The commands run in a directory of their own, beside the data that examples/flights/fetch keeps in ERIS_CACHE.
Needs nothing but Python's standard library.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
HEADING = "## A walk on real data"
CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
ERIS = os.environ.get("ERIS") or str(CACHE / "target/release/eris")
MORE = "   …> "
MARKER = "SELECT 'end of statement' AS marker;"


class Step:
    """A command or statement as the README has it, and what it shows below."""

    def __init__(self, shown):
        self.shown, self.expected = [shown], []

    def is_statement(self):
        return self.shown[0].startswith("eris> ")

    def text(self):
        first = self.shown[0].removeprefix("$ ").removeprefix("eris> ")
        return "\n".join([first] + [line.removeprefix(MORE) for line in self.shown[1:]])


def pieces(lines):
    """The README's lines in order: each a line as it is, or a Step of the walk."""
    inside = block = False
    found = []
    for line in lines:
        if line.startswith("## "):
            inside = line == HEADING
        if line.startswith("```"):
            block = inside and line == "```console"
            found.append(line)
        elif not block:
            found.append(line)
        elif line.startswith(("$ ", "eris> ")):
            found.append(Step(line))
        elif line.startswith(MORE):
            found[-1].shown.append(line)
        else:
            found[-1].expected.append(line)
    return found


def run(command, text=None, **options):
    """What a program prints on both channels; it may fail, as some statements of the walk do."""
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
        yield "" if command == "eris" else run(["bash", "-c", command], **options)


def main():
    read = pieces(README.read_text().splitlines())
    steps = [piece for piece in read if isinstance(piece, Step)]
    if not steps:
        sys.exit(f"README.md has no walk under {HEADING!r}")
    fetched = subprocess.run([ROOT / "examples/flights/fetch", CACHE / "flights"])
    if fetched.returncode != 0:
        print("SKIPPED: the walk on real data, because the data could not be fetched (see above)")
        sys.exit(1 if os.environ.get("CI") == "true" else 0)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="eris-walk-") as directory:
        (Path(directory) / "bin").mkdir()
        (Path(directory) / "bin/eris").symlink_to(ERIS)
        (Path(directory) / "examples").symlink_to(ROOT / "examples")
        (Path(directory) / "flights").symlink_to(CACHE / "flights")
        for step, printed in zip(steps, outputs(steps, directory)):
            printed = printed.splitlines()
            if "--write" not in sys.argv and printed != step.expected:
                failures += 1
                print("\n".join(step.shown))
                difference = difflib.unified_diff(step.expected, printed, "README.md", "now", lineterm="")
                print("\n".join(difference), end="\n\n")
            step.expected = printed
    if "--write" in sys.argv:
        lines = []
        for piece in read:
            lines += piece.shown + piece.expected if isinstance(piece, Step) else [piece]
        README.write_text("\n".join(lines) + "\n")
    print(f"{len(steps) - failures} of {len(steps)} commands of the walk print what the README shows")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
