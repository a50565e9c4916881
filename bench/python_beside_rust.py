#!/usr/bin/env python3
"""What Python adds: the module beside the command `eris`, which runs the same statements from Rust, in turns.

    python_beside_rust.py --eris target/release/eris
    python_beside_rust.py --eris BIN --only ssb --rounds 5 --output FILE

In each round the command measures a case in a process of its own, then this process measures the same. What is told is the median over
rounds, and the median of the ratios within a round.

    lookup     a prepared lookup by key, p50                     eris bench statement
    index      batches of keys looked up in a KeyIndex           eris bench index --part size
    ssb        the thirteen queries of the Star Schema Benchmark eris ssb run
    sessions   eight threads, each with a cursor of its own      eris ssb run --sessions 8

Exit status: 0 measured, 2 the command line is wrong.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import eris_db
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
THREADS = 2
# As in `eris bench index`.
BATCH = 1000
SESSIONS = 8
CASES = ("lookup", "index", "ssb", "sessions")


def main():
    options = parse_arguments()
    groups = dict(zip(CASES, (lookup, index, ssb, sessions), strict=True))
    wanted = options.only or CASES
    measured = {}
    for name in wanted:
        for case, unit, rust, python in groups[name](options):
            measured[case] = {"unit": unit, "rust": rust, "python": python}
            ratios = [mine / theirs for mine, theirs in zip(python, rust, strict=True)]
            print(
                f"{case}: rust {statistics.median(rust):.4g} {unit} · python {statistics.median(python):.4g} {unit} · "
                f"python/rust {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
                flush=True,
            )
    if options.output:
        machine = {"machine": platform.node(), "cores": os.cpu_count(), "python": platform.python_version()}
        with open(options.output, "w") as file:
            json.dump({**machine, "scale": options.scale, "keys": options.keys, "measured": measured}, file, indent=1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eris", required=True, help="the command")
    parser.add_argument("--scale", type=int, default=1, help="of the Star Schema Benchmark [%(default)s]")
    parser.add_argument("--keys", type=int, default=10_000_000, help="rows of the table, entries of the index [%(default)s]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds [%(default)s]")
    parser.add_argument("--only", type=lambda names: names.split(","), help="cases, with commas")
    parser.add_argument("--output", help="JSON file for the raw numbers")
    options = parser.parse_args()
    if options.rounds < 1 or options.keys < 1000:
        parser.error("at least one round and 1000 keys")
    if unknown := [name for name in options.only or [] if name not in CASES]:
        parser.error(f"--only: there is no {unknown[0]}; there are {', '.join(CASES)}")
    return options


def command(options, *arguments):
    """What the command says, as JSON."""
    run = [options.eris, *arguments, "--aeus", str(THREADS), "--json"]
    return json.loads(subprocess.run(run, stdout=subprocess.PIPE, check=True).stdout)


def lookup(options):
    connection = eris_db.connect(aeus=THREADS)
    connection.execute("CREATE TABLE keyed (k BIGINT PRIMARY KEY, v BIGINT, a INTEGER, b DOUBLE)")
    connection.execute(f"INSERT INTO keyed SELECT i, i * 3, i % 1000, i / 8.0 FROM range({options.keys}) AS s(i)")
    draw = np.random.default_rng(1)
    statement = "SELECT v, a, b FROM keyed WHERE k = ?"
    rust, python = [], []
    for _ in range(options.rounds):
        rows = command(options, "bench", "statement", "--keys", str(options.keys))["rows"]
        same = {"statement": "lookup", "way": "prepared", "p": 50}
        rust.append(next(row["value"] for row in rows if row["case"] == "closed loop" and same.items() <= row["params"].items()))
        times = []
        for key in draw.integers(0, options.keys, 20_000).tolist():
            begun = time.perf_counter_ns()
            row = connection.execute(statement, [key]).fetchone()
            times.append(time.perf_counter_ns() - begun)
            assert row[0] == key * 3
        python.append(statistics.median(times) / 1e3)
    connection.close()
    yield "lookup", "µs", rust, python


def index(options):
    database = eris_db.Database(aeus=THREADS)
    draw = np.random.default_rng(1)
    present = np.unique(draw.integers(0, 2**63, options.keys, dtype=np.uint64))
    made = eris_db.KeyIndex(database, 0, 2**63)
    made.put(present, present)
    out = np.empty(BATCH, dtype=np.uint64)
    rust, python = [], []
    for _ in range(options.rounds):
        rows = command(options, "bench", "index", "--part", "size", "--keys", str(options.keys), "--threads", "1")["rows"]
        same = {"structure": "routed", "order": "random", "batch": BATCH}
        rust.append(next(row["value"] for row in rows if row["case"] == "lookup" and same.items() <= row["params"].items()))
        rates = []
        for _ in range(5):
            batches = [draw.choice(present, BATCH) for _ in range(1000)]
            begun = time.perf_counter()
            for batch in batches:
                made.get(batch, out=out)
            rates.append(len(batches) * BATCH / (time.perf_counter() - begun) / 1e6)
            assert (out == batches[-1]).all()
        python.append(statistics.median(rates))
    database.close()
    yield "KeyIndex.get", "million/s", rust, python


def ssb_tables(options):
    """A connection to the tables of the benchmark, which the command keeps as files; and the queries."""
    # Makes the files if there are none.
    command(options, "ssb", "run", "--scale", str(options.scale), "--query", "1.1", "--runs", "1")
    cache = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
    files = cache / f"ssb-{eris_db.__version__}-{options.scale}"
    connection = eris_db.connect(aeus=THREADS)
    connection.show_progress = False
    for table in ("date", "customer", "supplier", "part", "lineorder"):
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{files / table}.parquet'")
    queries = {path.stem[1:]: path.read_text().strip() for path in sorted((ROOT / "crates/ssb/queries").glob("*.sql"))}
    for query in queries.values():
        connection.execute(query).fetchall()
    # What these have begun in the background ends.
    time.sleep(2)
    return connection, queries


def ssb(options):
    connection, queries = ssb_tables(options)
    rust, python = {query: [] for query in queries}, {query: [] for query in queries}
    runs = 7
    for _ in range(options.rounds):
        found = command(options, "ssb", "run", "--scale", str(options.scale), "--runs", str(runs))
        for query in found["queries"]:
            rust[query["id"]].append(statistics.median(query["ms"]))
        for name, query in queries.items():
            times = []
            for _ in range(runs + 1):
                begun = time.perf_counter()
                connection.execute(query).fetchall()
                times.append((time.perf_counter() - begun) * 1e3)
            python[name].append(statistics.median(times[1:]))
    connection.close()
    for name in queries:
        yield f"query {name}", "ms", rust[name], python[name]


def sessions(options):
    connection, queries = ssb_tables(options)
    texts = list(queries.values())
    cursors = [connection.cursor() for _ in range(SESSIONS)]

    def mix(first):
        for at in range(len(texts)):
            cursors[first].execute(texts[(first + at) % len(texts)]).fetchall()

    rust, python = [], []
    with ThreadPoolExecutor(SESSIONS) as pool:
        for _ in range(options.rounds):
            arguments = ("ssb", "run", "--scale", str(options.scale), "--runs", "5", "--sessions", str(SESSIONS))
            rust.append(statistics.median(command(options, *arguments)["sessions"]["together"]))
            rates = []
            for _ in range(6):
                begun = time.perf_counter()
                list(pool.map(mix, range(SESSIONS)))
                rates.append(SESSIONS * len(texts) / (time.perf_counter() - begun))
            python.append(statistics.median(rates[1:]))
    connection.close()
    yield "eight sessions", "queries/s", rust, python


if __name__ == "__main__":
    main()
