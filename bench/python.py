#!/usr/bin/env python3
"""Eris in the process of Python, beside DuckDB's and Polars' modules: lookups, batches by key, results out, frames in, in turns.

    python.py                                 10 million rows, 7 rounds
    python.py --rows 1000000 --rounds 3 --only out,in
    python.py --output FILE                   the raw numbers as JSON

Every case is one operation that the engines do one after the other in each round; the order changes from round to round. What is told
is the median over rounds and the median of the ratios within a round. Polars takes part where it does the same: it has no table by
key, and copies no frame into one. The limits are of DuckDB's time.

Exit status: 0 measured, 2 the command line is wrong.
"""

import argparse
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

import duckdb
import eris_db
import numpy as np
import polars
import pyarrow

COLUMNS = "i AS k, i * 3 AS v, (i % 1000)::INTEGER AS a, i / 8.0 AS b, 'item ' || (i % 5000) AS s"
THREADS = 2


def main():
    options = parse_arguments()
    groups = {"lookup": lookups, "keys": keys, "index": index, "out": out, "in": frames_in}
    known = [*groups, "memory"]
    wanted = options.only.split(",") if options.only else known
    if unknown := [name for name in wanted if name not in known]:
        print(f"--only: there is no {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        sys.exit(2)
    engines = Engines(options.rows)
    measured = {}
    for name in [name for name in wanted if name in groups]:
        for case in groups[name](engines, options):
            times = measure(case, options.rounds)
            measured[case.name] = times
            report(case, times)
    memory_used = memory(options) if "memory" in wanted else {}
    if options.output:
        machine = {"machine": platform.node(), "cores": os.cpu_count(), "python": platform.python_version()}
        versions = {"duckdb": duckdb.__version__, "polars": polars.__version__, "pyarrow": pyarrow.__version__}
        with open(options.output, "w") as file:
            found = {"rows": options.rows, "seconds": measured, "memory": memory_used}
            json.dump({**machine, **versions, **found}, file, indent=1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7, help="rounds [%(default)s]")
    parser.add_argument("--only", help="groups of cases, with commas")
    parser.add_argument("--output", help="JSON file for the raw numbers")
    options = parser.parse_args()
    if options.rounds < 1 or options.rows < 1000:
        parser.error("at least one round and 1000 rows")
    return options


class Engines:
    """Both databases with the same table, with a primary key and without."""

    def __init__(self, rows):
        self.rows = rows
        self.duck = duckdb.connect(config={"threads": THREADS})
        self.eris = eris_db.connect(aeus=THREADS)
        self.eris.show_progress = False
        self.duck.execute(f"CREATE TABLE plain AS SELECT {COLUMNS} FROM range({rows}) AS r(i)")
        self.frame = self.duck.sql("FROM plain").pl()
        self.table = self.frame.to_arrow()
        self.eris.execute("CREATE TABLE plain (k BIGINT, v BIGINT, a INTEGER, b DOUBLE, s VARCHAR)")
        self.eris.append("plain", self.frame)
        keyed = "CREATE TABLE keyed (k BIGINT PRIMARY KEY, v BIGINT, a INTEGER, b DOUBLE, s VARCHAR)"
        for engine in (self.duck, self.eris):
            engine.execute(keyed)
            engine.execute("INSERT INTO keyed SELECT * FROM plain")


class Case:
    """An operation of several engines, and the ratio that is asked: at most `limit` of the others' time."""

    def __init__(self, name, limit=None, repeat=1, **operations):
        self.name, self.limit, self.repeat, self.operations = name, limit, repeat, operations


def measure(case, rounds):
    """Seconds per engine and round; the first round does not count."""
    times = {engine: [] for engine in case.operations}
    for number in range(rounds + 1):
        for engine in sorted(case.operations, key=lambda engine: (number, hash(engine)), reverse=number % 2 == 1):
            gc.collect()
            operation = case.operations[engine]
            begin = time.perf_counter()
            for _ in range(case.repeat):
                kept = operation()
            seconds = (time.perf_counter() - begin) / case.repeat
            del kept
            if number > 0:
                times[engine].append(seconds)
    return times


def shown(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def report(case, times):
    parts = [f"{engine} {shown(statistics.median(taken))}" for engine, taken in times.items()]
    for other in list(times)[1:]:
        ratios = [mine / theirs for mine, theirs in zip(times["eris"], times[other], strict=True)]
        parts.append(f"eris/{other} {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    asked = f", asked {case.limit:.3g}" if case.limit else ""
    print(f"{case.name}: {' · '.join(parts)}{asked}", flush=True)


# ---- cases -----------------------------------------------------------------------------------------------------------


def lookups(engines, options):
    draw = random.Random(1)
    statement = "SELECT v, s FROM keyed WHERE k = ?"

    def run(engine):
        def one():
            return engine.execute(statement, [draw.randrange(engines.rows)]).fetchone()

        return one

    yield Case("lookup", 1 / 20, repeat=2000, eris=run(engines.eris), duckdb=run(engines.duck.cursor()))


def keys(engines, options):
    draw = np.random.default_rng(1)
    rows = engines.eris.rows("keyed")
    size = 100_000

    def fresh():
        return draw.integers(0, engines.rows, size)

    def get():
        return rows.get(fresh(), ["v", "b"])

    def join():
        wanted = polars.DataFrame({"k": fresh()})  # noqa: F841 - DuckDB finds it
        return engines.duck.sql("SELECT t.k, t.v, t.b FROM wanted JOIN keyed t USING (k)").pl()

    def join_frames():
        wanted = polars.DataFrame({"k": fresh()})
        return wanted.join(engines.frame, on="k").select("k", "v", "b")

    yield Case("rows.get", 1 / 3, eris=get, duckdb=join, polars=join_frames)

    def batch():
        k = np.unique(fresh())
        return polars.DataFrame({"k": k, "v": k, "a": (k % 7).astype(np.int32), "b": k / 2}).with_columns(s=polars.lit("new"))

    def put():
        return rows.put(batch())

    def upsert():
        new = batch()  # noqa: F841
        return engines.duck.execute("INSERT OR REPLACE INTO keyed SELECT * FROM new").fetchall()

    yield Case("rows.put", 1 / 3, eris=put, duckdb=upsert)


def index(engines, options):
    database = eris_db.Database(aeus=THREADS)
    made = eris_db.KeyIndex(database, 0, 2**63)
    draw = np.random.default_rng(1)
    present = draw.integers(0, 2**63, 10_000_000, dtype=np.uint64)
    made.put(present, present)
    out = np.empty(4096, dtype=np.uint64)
    batches = [draw.choice(present, 4096) for _ in range(64)]

    def get():
        for batch in batches:
            made.get(batch, out=out)

    yield Case("KeyIndex.get of 64 batches of 4096", eris=get)
    database.close()


def out(engines, options):
    eris, duck = engines.eris, engines.duck
    all_rows = "SELECT * FROM plain"
    yield Case("out to Polars", 0.6, eris=lambda: eris.execute(all_rows).pl(), duckdb=lambda: duck.sql(all_rows).pl())
    yield Case("out to pyarrow", 0.6, eris=lambda: eris.execute(all_rows).arrow(), duckdb=lambda: duck.sql(all_rows).to_arrow_table())
    yield Case("out to pandas", 0.8, eris=lambda: eris.execute(all_rows).df(), duckdb=lambda: duck.execute(all_rows).df())
    numbers = "SELECT k, v, a, b FROM plain"
    yield Case("out to numpy", None, eris=lambda: eris.execute(numbers).numpy(), duckdb=lambda: duck.execute(numbers).fetchnumpy())
    few = f"SELECT * FROM plain WHERE k < {engines.rows // 20}"
    yield Case("out as rows", None, eris=lambda: eris.execute(few).fetchall(), duckdb=lambda: duck.execute(few).fetchall())


def frames_in(engines, options):
    frame, table = engines.frame, engines.table
    pandas_frame = frame.to_pandas()
    for name, given in (("Polars", frame), ("pyarrow", table), ("pandas", pandas_frame)):
        given = given  # noqa: PLW0127 - the variable that both engines find

        def load(engine, given=given):
            engine.cursor().execute("DROP TABLE IF EXISTS made")
            engine.execute("CREATE TABLE made AS SELECT * FROM given")

        def total(engine, given=given):
            return engine.execute("SELECT a, sum(v), avg(b), max(s) FROM given GROUP BY a").fetchall()

        yield Case(
            f"CREATE TABLE AS from {name}", 1.0, eris=lambda load=load: load(engines.eris), duckdb=lambda load=load: load(engines.duck)
        )
        sums = (polars.sum("v"), polars.mean("b"), polars.max("s"))
        own = {"polars": lambda given=given: given.group_by("a").agg(*sums)} if name == "Polars" else {}
        yield Case(
            f"aggregate over {name}",
            1.2,
            eris=lambda total=total: total(engines.eris),
            duckdb=lambda total=total: total(engines.duck),
            **own,
        )


def memory(options):
    """By how much the process grows for a result, of its size; each in a process of its own that knows its modules."""
    grown = {}
    script = """
import resource, sys, eris_db
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
con = eris_db.connect(aeus=2)
con.execute("CREATE TABLE plain AS SELECT i AS k, i * 3 AS v, CAST(i % 1000 AS INTEGER) AS a, i / 8.0 AS b, 'item ' || (i % 5000) AS s FROM range({rows}) r(i)")
con.execute("SELECT * FROM plain LIMIT 1").arrow()
before = resident()
if sys.argv[1] == "all":
    kept = con.execute("SELECT * FROM plain").arrow()
    print((resident() - before) / kept.nbytes)
else:
    most = before
    for batch in con.execute("SELECT * FROM plain").reader():
        most = max(most, resident())
    print((most - before) / 1e6)
"""
    for which, what in (("all", "of the result's size"), ("batches", "MB, batch by batch")):
        command = [sys.executable, "-c", script.replace("{rows}", str(options.rows)), which]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"memory: grows by {float(found.stdout):.2f} {what}", flush=True)
        grown[f"grows by, {what}"] = float(found.stdout)
    return grown


if __name__ == "__main__":
    main()
