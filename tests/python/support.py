"""What several tests need: programs in a process of their own, statements without an end."""

import os
import subprocess
import sys
import textwrap

import pytest

# A statement that runs for hours: 10^12 rows.
DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS {}(n)"
ENDLESS = "SELECT sum(a.n + l.n) FROM " + ", ".join(DIGITS.format(name) for name in "abcdefghijkl")

# What programs begin with.
PRELUDE = """
import os, pathlib, signal, sys, threading, time
import eris_db
def connect(**how):
    connection = eris_db.connect(memory="1GB", topology="1x2", **how)
    connection.show_progress = False
    return connection
def watch_memory():
    # What should have been interrupted must not fill the machine.
    while int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 < 3_000_000_000:
        time.sleep(0.02)
    print("more than 3 GB", file=sys.stderr, flush=True)
    os._exit(99)
threading.Thread(target=watch_memory, daemon=True).start()
"""


def program(text, prelude=PRELUDE):
    """The text of a program."""
    return prelude + f"ENDLESS = {ENDLESS!r}\n" + textwrap.dedent(text)


def run(text, *, seconds=40, options=(), prelude=PRELUDE, **environment):
    """Runs a program to its end; its output. It must end in order."""
    command = [sys.executable, *options, "-c", program(text, prelude)]
    settings = {**os.environ, **environment}
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as hung:
        pytest.fail(f"it hangs\n{(hung.stdout or b'').decode()}\n{(hung.stderr or b'').decode()}")
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
