"""Rounds of any queries over any files: Eris beside peers, each with its tables in memory, at its defaults.

What is told is the median of each engine, and the ratio of the fastest peer's median to Eris's. Rows are compared in each
round. An engine that cannot run a query says so once, and is left out there.
"""

import json
import math
import statistics
import sys
import time

from common.compare import difference, expected_value
from common.process import StatementFailed

from .engines import CORES, datafusion, hyper
from .output import aligned, digits
from .process import Eris, Peer, serve

ERIS = "eris"


def duckdb(pipe, files):
    """Tables as they are in the files, threads as cores."""
    import duckdb

    def load():
        connection = duckdb.connect(config={"threads": CORES})
        for name, path in files.items():
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{path}'")
        return connection

    serve(pipe, f"DuckDB {duckdb.__version__}", load, lambda connection, _, sql: connection.execute(sql).fetchall())


PEERS = {"duckdb": duckdb, "hyper": hyper, "datafusion": datafusion}


def add_arguments(parser):
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]; several with commas are compared with each other")
    parser.add_argument("--peers", default="duckdb", help=f"of {', '.join(PEERS)}, with commas; empty: none [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds, behind one that is not timed [%(default)s]")
    parser.add_argument("--query", action="append", help="only this one; may be repeated")
    parser.add_argument("--output", help="JSON file for the raw numbers")


def run(options, binaries, files, texts):
    """Runs the rounds; `texts(number)` are those of one, by name. Returns how many answers were wrong."""
    names = [name for name in options.peers.split(",") if name]
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    engines = {}
    for number, binary in enumerate(binaries):
        engines[ERIS if number == 0 else f"{ERIS} {number + 1}"] = Eris(binary, files)
    for name in names:
        engines[name] = Peer(PEERS[name], files)
    for name, engine in engines.items():
        print(f"{name}: {engine.version}, loaded in {engine.load_s:.1f} s", file=sys.stderr)
    times = {name: {} for name in engines}
    cannot, wrong = set(), 0
    for number in range(options.rounds + 1):
        order = list(engines)[number % len(engines) :] + list(engines)[: number % len(engines)]
        for query, sql in texts(number).items():
            if options.query and query not in options.query:
                continue
            rows = {}
            for name in order:
                if (name, query) in cannot:
                    continue
                try:
                    milliseconds, rows[name] = engines[name].run(query, sql)
                except StatementFailed as failure:
                    if name.startswith(ERIS):
                        raise SystemExit(f"{query}: {failure}\n{sql}") from None
                    cannot.add((name, query))
                    print(f"{query}: {name} cannot: {str(failure).splitlines()[0]}", file=sys.stderr)
                    continue
                if number > 0:
                    times[name].setdefault(query, []).append(milliseconds)
            wrong += compare(query, sql, rows)
        print(f"\rround {number} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    memory = {name: engine.resident_bytes() for name, engine in engines.items()}
    for engine in engines.values():
        engine.close()
    print(table(engines, times, memory))
    if options.output:
        entries = {
            name: {"version": engine.version, "load_s": engine.load_s, "resident_bytes": memory[name], "ms": times[name]}
            for name, engine in engines.items()
        }
        with open(options.output, "w") as file:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            json.dump({"when": when, "cores": CORES, "rounds": options.rounds, "engines": entries}, file, indent=1)
    return wrong


def compare(query, sql, rows):
    """Holds all answers against DuckDB's, or the first one; how many differ. Ties at the end of a LIMIT may."""
    reference = "duckdb" if "duckdb" in rows else next(iter(rows))
    wrong = 0
    for name, answer in rows.items():
        # Peers answer with values of Python, eris with JSON.
        answer = [[expected_value(value) for value in row] for row in answer]
        report = difference(rows[reference], answer, names=(reference, name)) if name != reference else []
        if report:
            wrong += 1
            print(f"\n{query}: {name} differs from {reference}: {report[0]}", *report[1:], sql, sep="\n")
    return wrong


def table(engines, times, memory):
    """Medians in milliseconds, and how many times as fast as each other engine Eris is."""
    others = [name for name in engines if name != ERIS]
    header = ["query", *(f"{name}, ms" for name in engines), *(f"{name} / eris" for name in others)]
    rows = [header, ["---"] * len(header)]
    ratios = {name: [] for name in others}
    for query in times[ERIS]:
        medians = {name: statistics.median(times[name][query]) for name in engines if query in times[name]}
        row = [query, *(digits(medians.get(name)) for name in engines)]
        for name in others:
            ratio = medians[name] / medians[ERIS] if name in medians else None
            ratios[name] += [ratio] if ratio else []
            row.append(digits(ratio))
        rows.append(row)
    means = [math.exp(statistics.fmean(map(math.log, found))) if found else None for found in ratios.values()]
    rows.append(["geometric mean", *[""] * len(engines), *map(digits, means)])
    loads = [digits(engine.load_s) for engine in engines.values()]
    rows.append(["load, s", *loads, *[""] * len(others)])
    resident = [digits(bytes_of / 2**30) for bytes_of in memory.values()]
    rows.append(["resident memory, GiB", *resident, *[""] * len(others)])
    return aligned(rows)
