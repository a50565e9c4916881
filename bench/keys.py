#!/usr/bin/env python3
"""What a primary key costs a load from Parquet: in eris and in DuckDB, with and without one, in the key's order and not, in turns.

    keys.py                                   10 million rows, 7 rounds
    keys.py --rows 1000000 --rounds 3
    keys.py --output FILE                     the raw numbers as JSON

Before the first round the whole memory that loads take has been used once, by a round that does not count: a virtual machine's first
touch of its memory takes longer than a load.

Exit status: 0 measured, 2 the command line is wrong.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common.process import Session, StatementFailed, find_binary  # noqa: E402

# A column of each width, the key first.
COLUMNS = "i AS k, i * 3 AS v, (i % 1000)::INTEGER AS a, i / 8.0 AS b"
ORDERS = {"in order": "i", "shuffled": "hash(i)"}
TABLE = "CREATE TABLE t (k BIGINT{key}, v BIGINT, a INTEGER, b DOUBLE)"
KEYS = {"no key": "", "primary key": " PRIMARY KEY"}


def main():
    options = parse_arguments()
    binary = find_binary(options.eris)
    with tempfile.TemporaryDirectory(prefix="eris-keys-") as directory:
        files = {order: f"{directory}/{number}.parquet" for number, order in enumerate(ORDERS)}
        for order, by in ORDERS.items():
            rows = f"SELECT {COLUMNS} FROM range({options.rows}) AS r(i) ORDER BY {by}"
            duckdb.execute(f"COPY ({rows}) TO '{files[order]}' (FORMAT parquet)")
        session = Session(binary)
        peer = duckdb.connect()
        engines = {"eris": session.lines, "DuckDB": peer.execute}
        cases = [(engine, order, key) for engine in engines for order in files for key in KEYS]
        times = {case: [] for case in cases}
        for number in range(options.rounds + 1):
            for engine, order, key in cases:
                seconds = load(engines[engine], files[order], KEYS[key])
                if number > 0:
                    times[engine, order, key].append(seconds)
            print(f"round {number} of {options.rounds}", file=sys.stderr)
        session.close()
    report(options, binary, times)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of a load [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds [%(default)s]")
    parser.add_argument("--output", help="JSON file for the raw numbers")
    options = parser.parse_args()
    if options.rounds < 1 or options.rows < 1:
        parser.error("at least one round and one row")
    return options


def load(execute, path, key):
    execute(TABLE.format(key=key))
    begin = time.perf_counter()
    execute(f"INSERT INTO t SELECT * FROM '{path}'")
    seconds = time.perf_counter() - begin
    execute("DROP TABLE t")
    return seconds


def report(options, binary, times):
    print(f"{'':28}{'s':>8}{'least':>8}{'most':>8}{'× no key':>10}")
    for (engine, order, key), runs in times.items():
        # Rounds, not medians, are divided: both loads of a round have met the same machine.
        ratios = [run / other for run, other in zip(runs, times[engine, order, "no key"])]
        ratio = f"{statistics.median(ratios):10.2f}" if key != "no key" else ""
        print(f"{f'{engine}, {order}, {key}':28}{statistics.median(runs):8.2f}{min(runs):8.2f}{max(runs):8.2f}{ratio}")
    if options.output:
        version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        raw = {
            "bench": "keys",
            "rows": options.rows,
            "engines": [version, f"DuckDB {duckdb.__version__}"],
            "machine": {"kernel": platform.release(), "cpus": os.cpu_count()},
            "seconds": [{"engine": engine, "order": order, "key": key, "runs": runs} for (engine, order, key), runs in times.items()],
        }
        Path(options.output).write_text(json.dumps(raw, indent=1) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StatementFailed as failure:
        sys.exit(str(failure))
