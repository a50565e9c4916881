#!/usr/bin/env python3
"""The interactive prompt on a pseudo-terminal: lines, Ctrl-C, Ctrl-D, history.

Needs nothing but Python's standard library. The binary: the environment's ERIS.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ERIS = os.environ.get("ERIS") or str(Path.home() / ".cache/eris/target/release/eris")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
ENDLESS = (
    "WITH d(n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) SELECT a.n FROM "
    "d AS a, d AS b, d AS c, d AS e, d AS f, d AS g, d AS h, d AS i, d AS j, d AS k, d AS l;"
)


class Prompt:
    """An eris that believes to talk to a person."""

    def __init__(self, state):
        environment = dict(os.environ, XDG_STATE_HOME=state, ERIS_TOPOLOGY="1x2", TERM="xterm")
        self.terminal, child = pty.openpty()
        self.process = subprocess.Popen(
            [ERIS], stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
        )
        os.close(child)
        self.text = ""
        self.wait_for("eris> ")

    def wait_for(self, expected, seconds=20):
        """Reads until `expected` appears; what came before it."""
        end = time.monotonic() + seconds
        while expected not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {expected!r} within {seconds} s, but {self.text!r}")
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:  # The other side has closed.
                piece = b""
            if not piece:
                raise AssertionError(f"it ended without {expected!r}: {self.text!r}")
            # An endless result is not kept.
            self.text = self.text[-10_000:] + CONTROL.sub("", piece.decode(errors="replace"))
        before, _, self.text = self.text.partition(expected)
        return before

    def send(self, text):
        os.write(self.terminal, text.encode())

    def end(self, seconds=20):
        """Its exit status; what it still says is read, or it could not end."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            ready, _, _ = select.select([self.terminal], [], [], 0.1)
            try:
                if ready and not os.read(self.terminal, 65536):
                    break
            except OSError:
                break
        try:
            return self.process.wait(max(0.1, end - time.monotonic()))
        finally:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGKILL)
            os.close(self.terminal)


class Shell(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.state = directory.name

    def test_a_statement_may_span_lines(self):
        prompt = Prompt(self.state)
        prompt.send("SELECT 40 +\r")
        prompt.send("2 AS answer;\r")
        shown = prompt.wait_for("(1 row, ")
        self.assertIn("│     42 │", shown)
        prompt.wait_for("eris> ")
        prompt.send("\\q\r")
        self.assertEqual(prompt.end(), 0)

    def test_an_error_keeps_the_shell(self):
        prompt = Prompt(self.state)
        prompt.send("SELECT nothing;\r")
        prompt.wait_for("error: ")
        prompt.wait_for("eris> ")
        prompt.send("SELECT 7 AS seven;\r")
        prompt.wait_for("│     7 │")
        prompt.wait_for("eris> ")
        prompt.send("\x04")
        self.assertEqual(prompt.end(), 0)

    def test_ctrl_c_cancels_the_statement_and_keeps_the_shell(self):
        prompt = Prompt(self.state)
        prompt.send(ENDLESS + "\r")
        prompt.wait_for("│ 0 │")
        prompt.process.send_signal(signal.SIGINT)
        prompt.wait_for("cancelled")
        prompt.wait_for("eris> ")
        prompt.send("SELECT 8 AS eight;\r")
        prompt.wait_for("│     8 │")
        prompt.wait_for("eris> ")
        prompt.send("\x04")
        self.assertEqual(prompt.end(), 0)

    def test_ctrl_c_at_the_prompt_forgets_the_input(self):
        prompt = Prompt(self.state)
        prompt.send("SELECT 'half")
        prompt.send("\x03")
        prompt.wait_for("eris> ")
        prompt.send("SELECT 9 AS nine;\r")
        prompt.wait_for("│    9 │")
        prompt.send("\x04")
        self.assertEqual(prompt.end(), 0)

    def test_history_is_kept_where_the_standard_says(self):
        prompt = Prompt(self.state)
        prompt.send("SELECT 10 AS ten;\r")
        prompt.wait_for("(1 row, ")
        prompt.wait_for("eris> ")
        prompt.send("\\q\r")
        self.assertEqual(prompt.end(), 0)
        self.assertIn("SELECT 10 AS ten;", Path(self.state, "eris/history").read_text())
        prompt = Prompt(self.state)
        prompt.send("\x1b[A\x1b[A\r")  # Up twice: over \q to the statement.
        prompt.wait_for("│  10 │")
        prompt.wait_for("eris> ")
        prompt.send("\x04")
        self.assertEqual(prompt.end(), 0)

    def test_help_and_unknown_commands(self):
        prompt = Prompt(self.state)
        prompt.send("\\?\r")
        prompt.wait_for("Ctrl-C")
        prompt.wait_for("eris> ")
        prompt.send("\\nonsense\r")
        prompt.wait_for("unknown command \\nonsense")
        prompt.wait_for("eris> ")
        prompt.send("\x04")
        self.assertEqual(prompt.end(), 0)


if __name__ == "__main__":
    if not Path(ERIS).is_file():
        sys.exit("no eris binary: run `make build`, or give ERIS=PATH")
    unittest.main()
