"""Eris and its peers, each in a process of its own that holds the five tables in memory.

    process    answers                                      times
    eris       JSON rows on a pipe, a marker behind each    from writing the statement to reading the marker
    a peer     pickled rows on a pipe                       in its own process, from the call to the complete rows
"""

import multiprocessing
import os
import statistics
import subprocess
import time
from pathlib import Path

from common import benchmark
from common.process import Session, StatementFailed, parse_row


class Eris:
    """A long-living eris process behind a pipe."""

    def __init__(self, binary, files, recoding=True):
        self.session = Session(binary)
        if not recoding:
            self.session.lines("SET key_recoding = off")
        self.session.rows("SELECT 1 AS one")
        begin = time.perf_counter()
        for name, path in files.items():
            self.session.lines(benchmark.load_statement(name, path), timeout=3600)
        self.load_s = time.perf_counter() - begin
        self.settle_s = 0.0
        version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        self.version = version if recoding else f"{version}, no re-coding"
        self.recoding = recoding
        self.framing_ms = statistics.median(self.timed("SELECT 1 AS one")[0] for _ in range(50)) / 2

    def timed(self, sql):
        begin = time.perf_counter()
        lines = self.session.lines(sql)
        milliseconds = (time.perf_counter() - begin) * 1e3
        return milliseconds, lines

    def run(self, _name, sql):
        """Milliseconds and rows."""
        milliseconds, lines = self.timed(sql)
        return milliseconds, [parse_row(line) for line in lines]

    def settle(self):
        """Waits until the columns that the warm-up has joined are stored for it, which began in the background."""
        if self.recoding:
            begin = time.perf_counter()
            self.session.lines("CALL eris.recode('lineorder')", timeout=600)
            self.settle_s += time.perf_counter() - begin

    def resident_bytes(self):
        return resident_bytes(self.session.process.pid)

    def close(self):
        self.session.close()


class Peer:
    """An engine with a Python client, in a process of its own."""

    # None of them does anything in the background behind its load.
    settle_s = 0.0

    def __init__(self, server, files):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=server, args=(other, files), daemon=True)
        self.process.start()
        other.close()
        self.version, self.load_s = self.answer()

    def answer(self):
        try:
            reply = self.pipe.recv()
        except EOFError:
            raise StatementFailed("the process of a peer died") from None
        if isinstance(reply, Exception):
            raise StatementFailed(str(reply))
        return reply

    def run(self, name, sql):
        """Milliseconds, measured in the engine's own process, and rows."""
        self.pipe.send((name, sql))
        return self.answer()

    def settle(self):
        pass

    def resident_bytes(self):
        return resident_bytes(self.process.pid)

    def close(self):
        self.pipe.close()
        self.process.join(timeout=30)


def serve(pipe, version, load, run):
    """A peer's process: loads, then answers each query with its time and rows until the pipe closes."""
    try:
        begin = time.perf_counter()
        engine = load()
        pipe.send((version, time.perf_counter() - begin))
    except Exception as error:  # Whatever it is, the parent reports it.
        pipe.send(StatementFailed(f"{version}: {error}"))
        return
    while True:
        try:
            name, sql = pipe.recv()
        except EOFError:
            return
        try:
            begin = time.perf_counter()
            rows = run(engine, name, sql)
            pipe.send(((time.perf_counter() - begin) * 1e3, rows))
        except Exception as error:
            pipe.send(StatementFailed(f"{version}: Q{name}: {error}"))


def resident_bytes(pid):
    """Memory that the process and those that it has started occupy now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident_bytes(child) for child in children)
