#!/usr/bin/env python3
"""What a commit takes on a disk: in eris, SQLite, DuckDB and PostgreSQL, in turns, beside a flush of this disk.

    durability.py --data data/ssb-0.1 --scale 0.1             5 rounds
    durability.py --data data/ssb1 --scale 1 --dir /data --rounds 7 --seconds 3
    durability.py … --output FILE                             the raw numbers as JSON

A round is `eris bench commit --rounds 1`, then each peer with a new database in the same directory:

    SQLite        upserts of one row; WAL, synchronous=FULL; in process
    DuckDB        the same, and a load of the same Parquet files; in process
    PostgreSQL    the same upserts by one session and by 16; a server as it comes, asked by pgbench through a socket

Every peer answers when what it did is on the disk, and its table is that of eris: 100,000 rows with a key. PostgreSQL is
left out if there is no server, or if this user may run none.

Where other programs use the cores, a thread that a flush wakes up may have to wait for the next tick of the kernel, and each
flush seems to take some 4 ms. `chrt -r 10 make bench-durability` lets eris and its peers go first.

Exit status: 0 measured, 1 eris or a peer failed, 2 the command line is wrong.
"""

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common import benchmark  # noqa: E402
from common.process import find_binary  # noqa: E402

KEYS = 100_000
# As eris bench commit has them.
STEP, SESSIONS = 7_919, 16
TABLE = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, a INTEGER, b DOUBLE PRECISION)"
UPSERT = "INSERT INTO t VALUES ({}, {}, 1, 0.5) ON CONFLICT (k) DO UPDATE SET v = excluded.v, a = excluded.a, b = excluded.b"
# Where Debian has what is not on the path.
POSTGRES = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]


class PeerFailed(Exception):
    """The text says which and why."""


class Rows(dict):
    """Runs and limits by case, parameters and unit, in the order in which they came."""

    def add(self, case, params, unit, value, limit=None):
        runs, limits = self.setdefault((case, tuple(params.items()), unit), ([], []))
        runs.append(value)
        limits.extend([] if limit is None else [limit])

    def add_times(self, params, microseconds, seconds):
        """The upserts of a round: their times, and how long all of them took."""
        microseconds.sort()
        params = params | {"sessions": params.get("sessions", 1)}
        for percent in (50, 99):
            place = min(len(microseconds) * percent // 100, len(microseconds) - 1)
            self.add("upsert", params | {"p": percent}, "µs", microseconds[place])
        self.add("upsert", params, "per second", len(microseconds) / seconds)


def main():
    options = parse_arguments()
    binary = find_binary(options.eris)
    files = {table: benchmark.parquet(options.data, table) for table in benchmark.TABLES}
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    engines, rows, machine = [version], Rows(), None
    with tempfile.TemporaryDirectory(prefix="eris-peers-", dir=options.dir) as directory:
        postgres = Postgres.find(Path(directory))
        engines += [f"SQLite {sqlite3.sqlite_version}", f"DuckDB {duckdb.__version__}", *([postgres.version] if postgres else [])]
        for number in range(1, options.rounds + 1):
            machine = eris_round(binary, options, rows)
            sqlite_round(Path(directory) / f"{number}.sqlite", options.seconds, rows)
            duckdb_round(Path(directory) / f"{number}.duckdb", options.seconds, files, rows)
            if postgres:
                postgres.round(options.seconds, rows)
            print(f"round {number} of {options.rounds}", file=sys.stderr)
    raw = {"bench": "durability", "engines": engines, "machine": machine, "rows": list(described(rows))}
    print(table(raw))
    if options.output:
        Path(options.output).write_text(json.dumps(raw, ensure_ascii=False, indent=1) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="directory with the five Parquet files of the Star Schema Benchmark")
    parser.add_argument("--scale", type=float, required=True, help="the scale that they were made with")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="on which disk: a directory of it [%(default)s]")
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds [%(default)s]")
    parser.add_argument("--seconds", type=float, default=1, help="how long each case of a round lasts [%(default)s]")
    parser.add_argument("--output", help="JSON file for the raw numbers")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("at least one round, and some time")
    return options


def eris_round(binary, options, rows):
    command = [binary, "bench", "commit", "--json", "--rounds", "1", "--dir", options.dir, "--data", options.data]
    command += ["--seconds", str(options.seconds), "--scale", str(options.scale)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise PeerFailed(f"eris: {ended.stderr.strip()}")
    report = json.loads(ended.stdout)
    for row in report["rows"]:
        rows.add(row["case"], row["params"], row["unit"], row["value"], row["limit"])
    return report["machine"]


def upserts(execute, seconds):
    """Microseconds of one upsert after the other, and the seconds of all."""
    times, begun = [], time.perf_counter()
    while not times or time.perf_counter() - begun < seconds:
        number = len(times) + 1
        before = time.perf_counter()
        execute(UPSERT.format("?", "?"), (number * STEP % KEYS, number))
        times.append((time.perf_counter() - before) * 1e6)
    return times, time.perf_counter() - begun


def sqlite_round(path, seconds, rows):
    connection = sqlite3.connect(path, isolation_level=None)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    if mode != "wal" or connection.execute("PRAGMA synchronous").fetchone() != (2,):
        raise PeerFailed("SQLite: no WAL with synchronous=FULL here")
    connection.execute(TABLE)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, 0, 1, 0.5)", ((key,) for key in range(KEYS)))
    connection.execute("COMMIT")
    times, lasted = upserts(connection.execute, seconds)
    check("SQLite", connection.execute("SELECT max(v) FROM t").fetchone()[0], len(times))
    rows.add_times({"engine": "SQLite"}, times, lasted)
    connection.close()


def duckdb_round(path, seconds, files, rows):
    connection = duckdb.connect(str(path))
    connection.execute(TABLE)
    connection.execute(f"INSERT INTO t SELECT i, 0, 1, 0.5 FROM range({KEYS}) AS r(i)")
    times, lasted = upserts(connection.execute, seconds)
    check("DuckDB", connection.execute("SELECT max(v) FROM t").fetchone()[0], len(times))
    rows.add_times({"engine": "DuckDB"}, times, lasted)
    connection.close()
    path.unlink()
    connection = duckdb.connect(str(path))
    begun = time.perf_counter()
    for name, file in files.items():
        connection.execute(benchmark.load_statement(name, file))
    rows.add("load", {"engine": "DuckDB", "into": "a directory"}, "s", time.perf_counter() - begun)
    connection.close()
    rows.add("load", {"engine": "DuckDB", "into": "a directory"}, "MB", path.stat().st_size / 1e6)


def check(engine, got, expected):
    if got != expected:
        raise PeerFailed(f"{engine}: the number of the last upsert is {got} instead of {expected}")


class Postgres:
    """A server that is started for each round, by its own user if this is root, who may run none."""

    def __init__(self, directory):
        self.directory = directory
        self.user = "postgres" if os.geteuid() == 0 else None
        self.version = self.run("postgres", "--version").replace("postgres (PostgreSQL)", "PostgreSQL").strip()

    @classmethod
    def find(cls, directory):
        """None if there is none, which is said."""
        try:
            directory = directory / "postgres"
            directory.mkdir()
            directory.parent.chmod(0o711)
            if os.geteuid() == 0:
                shutil.chown(directory, "postgres")
            postgres = cls(directory)
            with postgres.started():
                return postgres
        except (PeerFailed, OSError, LookupError) as failure:
            print(f"PostgreSQL was left out: {failure}", file=sys.stderr)
            return None

    def run(self, program, *arguments, text=None):
        path = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, POSTGRES)]))
        if path is None:
            raise PeerFailed(f"there is no {program}")
        ended = subprocess.run([path, *arguments], input=text, capture_output=True, text=True, user=self.user, cwd=self.directory)
        if ended.returncode != 0:
            raise PeerFailed(f"{program}: {(ended.stderr or ended.stdout).strip()}")
        return ended.stdout

    @contextmanager
    def started(self):
        data = str(self.directory / "data")
        self.run("initdb", "-D", data, "--auth=trust", "--username=postgres", "--no-sync")
        server = f"-c listen_addresses='' -c unix_socket_directories='{self.directory}'"
        self.run("pg_ctl", "-D", data, "-w", "-l", str(self.directory / "log"), "-o", server, "start")
        try:
            yield
        finally:
            self.run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop")
            shutil.rmtree(data)

    def round(self, seconds, rows):
        to_server = ["-h", str(self.directory), "-U", "postgres", "postgres"]
        script = f"\\set k random(0, {KEYS - 1})\n\\set v random(1, 1000000000)\n{UPSERT.format(':k', ':v')};\n"
        with self.started():
            rows_of_table = f"INSERT INTO t SELECT i, 0, 1, 0.5 FROM generate_series(0, {KEYS - 1}) AS r(i)"
            self.run("psql", "-qX", "-v", "ON_ERROR_STOP=1", *to_server, text=f"{TABLE};\n{rows_of_table};\nVACUUM ANALYZE t;\n")
            for sessions in (1, SESSIONS):
                threads = min(sessions, len(os.sched_getaffinity(0)))
                # It takes whole seconds only.
                command = ["-n", "-M", "prepared", "-T", str(max(1, round(seconds))), "-c", str(sessions), "-j", str(threads)]
                command += ["-l", "--log-prefix", "times", "-f", "-", *to_server]
                said = self.run("pgbench", *command, text=script)
                times = []
                for log in self.directory.glob("times.*"):
                    times += [float(line.split()[2]) for line in log.read_text().splitlines()]
                    log.unlink()
                (rate,) = [float(line.split()[2]) for line in said.splitlines() if line.startswith("tps")]
                rows.add_times({"engine": "PostgreSQL", "sessions": sessions}, times, len(times) / rate)


def described(rows):
    """Rows as those of `eris bench`; those of a peer also beside eris, each round with itself."""
    for (case, params, unit), (runs, limits) in rows.items():
        params = dict(params)
        row = {"case": case, "params": params, "value": statistics.median(runs), "unit": unit, "runs": runs}
        row["limit"] = statistics.median(limits) if limits else None
        if "engine" in params:
            own = next(own for (*key, own_unit), (own, _) in rows.items() if own_unit == unit and is_same(params, case, *key))
            row["beside_eris"] = statistics.median(peer / eris for peer, eris in zip(runs, own))
        yield row


def is_same(params, case, own_case, own_params):
    """Whether a case of eris is a peer's: it may say more of itself, such as its scale."""
    wanted = {name: value for name, value in params.items() if name != "engine"}
    own = {name: value for name, value in own_params if name != "scale"}
    return case == own_case and wanted == own


def table(raw):
    machine = raw["machine"]
    lines = [["case", "value", "unit", "min", "max", "limit", "of limit", "× eris"]]
    for row in raw["rows"]:
        limit, ratio = row["limit"], row.get("beside_eris")
        named = " ".join(f"{name}={value}" for name, value in row["params"].items())
        of_limit = f"{100 * row['value'] / limit:.0f} %" if limit else ""
        numbers = [digits(row["value"]), row["unit"], digits(min(row["runs"])), digits(max(row["runs"]))]
        lines.append([f"{row['case']} {named}", *numbers, digits(limit), of_limit, digits(ratio)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = [f"{', '.join(raw['engines'])}", f"{machine['cpu']}, {machine['threads']} threads, {machine['kernel']}", ""]
    for line in lines:
        cells = [cell.ljust(width) if column in (0, 2) else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths))]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)


def digits(value):
    """Three or more significant digits, as `eris bench` has them."""
    if value is None:
        return ""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PeerFailed as failure:
        sys.exit(str(failure))
