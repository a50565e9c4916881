"""An eris on a pseudo-terminal that believes to talk to a person."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

ERIS = os.environ.get("ERIS") or str(Path.home() / ".cache/eris/target/release/eris")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x07")
PROMPT = "eris> "


class Terminal:
    """The other side of the terminal: types, and reads what appears."""

    def __init__(self, state, columns=120, rows=24, **environment):
        """`state` is where the history is kept."""
        settings = dict(os.environ, XDG_STATE_HOME=state, ERIS_TOPOLOGY="1x2", TERM="xterm")
        for name in ("ERIS_PAGER", "PAGER", "LESS", "NO_COLOR"):
            settings.pop(name, None)
        settings["ERIS_PAGER"] = ""
        settings.update(environment)
        self.terminal, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [ERIS], stdin=child, stdout=child, stderr=child, env=settings, preexec_fn=lambda: own(child), close_fds=True
        )
        os.close(child)
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.text = ""
        self.wait_for(PROMPT)

    def wait_for(self, expected, seconds=30):
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
            # An endless result is not kept. A piece may end inside of a character or of a control sequence.
            self.text = CONTROL.sub("", self.text[-20_000:] + self.decoder.decode(piece))
        before, _, self.text = self.text.partition(expected)
        return before

    def send(self, text):
        """Types."""
        os.write(self.terminal, text.encode())

    def ask(self, line):
        """Types a line and returns what appears up to the next prompt."""
        self.send(line + "\r")
        # The line is drawn as it is typed, prompt included; what follows its end is the answer.
        self.wait_for("\n")
        return self.wait_for(PROMPT)

    def interrupt(self):
        """Presses Ctrl-C while the shell does not edit: the terminal makes a signal of it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, how="\x04", seconds=30):
        """Leaves; its exit status. What it still says is read, or it could not end."""
        self.send(how)
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            ready, _, _ = select.select([self.terminal], [], [], 0.05)
            try:
                if ready and not os.read(self.terminal, 65536):
                    break
            except OSError:
                break
        try:
            return self.process.wait(max(0.1, end - time.monotonic()))
        finally:
            self.close()

    def close(self):
        """Ends it in any case."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None


def own(terminal):
    """Makes the terminal the child's own, in a session of its own."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
