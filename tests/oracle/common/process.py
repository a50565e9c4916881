"""An eris process as a database: statements in on its standard input, JSON rows out.

With `--format jsonl` a statement prints one object per row and nothing else, so the end of a result does not show.
Every statement is therefore followed by one that selects a marker:

    CREATE TABLE t AS SELECT * FROM 't.parquet';        (nothing)
    SELECT 'done 0' AS marker;                          {"marker":"done 0"}
    SELECT a, b FROM t;                                 {"a":1,"b":"x"}
                                                        {"a":2,"b":"y"}
    SELECT 'done 1' AS marker;                          {"marker":"done 1"}

A failing statement ends the process, so it is the first whose marker is missing.
"""

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from decimal import Decimal
from pathlib import Path


# Each failure costs a new process that loads everything again.
MOST_RESTARTS = 10


class StatementFailed(Exception):
    """eris rejected a statement, died in it or did not finish it in time; the text is what it said."""


def parse_row(line):
    """A JSON object as a list of values; numbers with a fraction stay exact."""
    return list(json.loads(line, parse_float=Decimal).values())


def find_binary(argument):
    """The eris binary: the argument, else the environment's ERIS, else the usual place."""
    built = Path.home() / ".cache/eris/target/release/eris"
    path = Path(argument or os.environ.get("ERIS") or built)
    if not path.is_file():
        raise SystemExit(f"no eris binary at {path}: run `make build`, or give --eris PATH or ERIS=PATH")
    return str(path.resolve())


def environment(topology):
    """The environment of a process that pretends to have `topology`, as in "4x2"; None for the real machine."""
    variables = dict(os.environ)
    variables.pop("ERIS_TOPOLOGY", None)
    if topology:
        variables["ERIS_TOPOLOGY"] = topology
    return variables


def marker_line(number):
    return f"SELECT 'done {number}' AS marker;\n"


def is_marker(line, number):
    return line.startswith('{"marker":') and json.loads(line) == {"marker": f"done {number}"}


def run_statements(binary, setup, statements, topology=None, timeout=600):
    """Runs `setup`, then `statements`, in one process as long as none fails.

    Returns one entry per statement: its rows, or the StatementFailed that it met. After a failure a new process runs the
    setup and goes on behind the failed statement, a few times. A failure in the setup is raised.
    """
    outcomes, restarts = [], 0
    while len(outcomes) < len(statements):
        if restarts > MOST_RESTARTS:
            missing = len(statements) - len(outcomes)
            return outcomes + [StatementFailed(f"not run, after {restarts} failures")] * missing
        script = list(setup) + statements[len(outcomes):]
        results, failure = _run_script(binary, script, topology, timeout)
        if failure is not None and len(results) < len(setup):
            raise StatementFailed(f"{script[len(results)]}\n{failure}")
        outcomes += results[len(setup):]
        if failure is not None:
            outcomes.append(failure)
            restarts += 1
    return outcomes


def run_script(binary, script, topology=None, timeout=600):
    """Runs statements of which each may depend on those before it; one entry per statement, as of `run_statements`.

    A failed one is left out, and a new process runs all others from the first on, a few times.
    """
    failed = {}
    while True:
        places = [place for place in range(len(script)) if place not in failed]
        results, failure = _run_script(binary, [script[place] for place in places], topology, timeout)
        if failure is not None and len(failed) < MOST_RESTARTS:
            failed[places[len(results)]] = failure
            continue
        outcomes = dict(failed)
        outcomes.update(zip(places, results))
        if failure is not None:
            outcomes[places[len(results)]] = failure
        not_run = StatementFailed(f"not run, after {len(failed) + 1} failures")
        return [outcomes.get(place, not_run) for place in range(len(script))]


def _run_script(binary, script, topology, timeout):
    """Results of the statements that succeeded, and why the next one did not (None when all did)."""
    text = "".join(f"{sql};\n{marker_line(number)}" for number, sql in enumerate(script))
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as output:
        given.write(text)
        given.seek(0)
        process = subprocess.Popen(
            [binary, "--format", "jsonl"],
            stdin=given,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(topology),
        )
        try:
            _, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            errors = f"no end within {timeout} s; {errors}"
        # What was printed until then tells how far it came; the last line may be cut.
        output.seek(0)
        results, rows = [], []
        for line in output:
            if is_marker(line, len(results)):
                results.append([parse_row(row) for row in rows])
                rows = []
            else:
                rows.append(line)
    if len(results) < len(script):
        return results, StatementFailed(f"exit status {process.returncode}: {errors.strip() or 'no message'}")
    if process.returncode != 0:
        raise StatementFailed(f"every statement succeeded, yet the exit status is {process.returncode}: {errors}")
    return results, None


class Watch:
    """Kills a process that is too late. One thread for all statements: to start one for each would take as long as a short query."""

    ROUND_S = 1.0

    def __init__(self, process):
        self.process = process
        self.deadline = None
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self, timeout):
        self.deadline = time.monotonic() + timeout

    def end(self):
        self.deadline = None

    def _run(self):
        while self.process.poll() is None:
            deadline = self.deadline
            if deadline is not None and time.monotonic() > deadline:
                self.process.kill()
            time.sleep(self.ROUND_S)


class Session:
    """A long-living eris process: one statement at a time, each awaited to its marker."""

    def __init__(self, binary, topology=None, arguments=()):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [binary, "--format", "jsonl", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment(topology),
        )
        self.count = 0
        self.watch = Watch(self.process)

    def lines(self, sql, timeout=600):
        """Runs one statement; its output lines. What is timed should end here: parse them later.

        eris must run statements as they arrive; one that waited for the end of its input would meet the timeout.
        """
        number = self.count
        self.count += 1
        lines = []
        self.watch.begin(timeout)
        try:
            self.process.stdin.write(f"{sql};\n{marker_line(number)}")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if is_marker(line, number):
                    return lines
                lines.append(line)
        except BrokenPipeError:
            pass  # It ended; what it said follows.
        finally:
            self.watch.end()
        status = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().strip() or f"no answer within {timeout} s, or it died without a word"
        raise StatementFailed(f"{sql}\nexit status {status}: {said}")

    def rows(self, sql):
        """Runs one statement; its rows."""
        return [parse_row(line) for line in self.lines(sql)]

    def close(self):
        """Ends the process by ending its input."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
