#!/usr/bin/env python3
"""TPC-H in eris and in DuckDB: same files, same texts, results compared, whatever way a query is executed.

    tpch.py                     scale 0.1 (or ERIS_TPCH_SCALE), constants and orders of FROM of seed 1 (or ERIS_ORACLE_SEED)
    tpch.py --query 5           only this query; may be repeated
    tpch.py --topologies 4x2

Each query is asked as the standard writes it, with other constants and its tables named in other orders, with parts of the
optimizer switched off, and with so little memory that joins and groups go to files. The tables are made by tpchgen-cli
(PyPI).

Exit status: 0 all results agree, 1 some do not, 2 the command line is wrong.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from common import benchmark, tpch
from common.compare import difference
from common.process import StatementFailed, find_binary, run_statements

# What is set before the queries.
WAYS = {
    "as it is": [],
    "joins as written": ["SET join_reordering = off"],
    "no keys told": ["SET join_filters = off"],
    "sorted joins": ["SET prefer_hash_join = off"],
    "little memory": ["SET memory_limit = '{memory}MB'"],
}
# Of which the tables have 250.
MEGABYTES_PER_SCALE = 300


def main():
    options = parse_arguments()
    binary = find_binary(options.eris)
    with tempfile.TemporaryDirectory(prefix="eris-tpch-") as scratch:
        files = tpch.generated(Path(options.data or scratch), options.scale)
        return compare(binary, files, options)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]")
    parser.add_argument("--data", help="directory with the files, made if missing [a temporary one]")
    parser.add_argument("--scale", default=os.environ.get("ERIS_TPCH_SCALE", "0.1"), help="scale factor [%(default)s]")
    parser.add_argument("--seed", default=os.environ.get("ERIS_ORACLE_SEED", "1"), help="of constants and orders; clock: another one each time [%(default)s]")
    parser.add_argument("--orders", type=int, default=2, help="orders of FROM that are drawn [%(default)s]")
    parser.add_argument("--query", action="append", help="only this query, such as 5; may be repeated")
    parser.add_argument("--topologies", default="1x1,1x2,4x2", help="nodes x cores to run on [%(default)s]")
    options = parser.parse_args()
    unknown = set(options.query or []) - set(tpch.QUERIES)
    if unknown:
        parser.error(f"no such query: {', '.join(sorted(unknown))}")
    if options.seed == "clock":
        options.seed = str(time.time_ns())
    return options


def compare(binary, files, options):
    oracle = duckdb.connect()
    for table, path in files.items():
        oracle.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    written = tpch.texts(tpch.FIXED, options.scale)
    written = {name: sql for name, sql in written.items() if name in (options.query or written)}
    source = random.Random(options.seed)
    others = {}
    for number in range(options.orders):
        drawn = tpch.texts(tpch.drawn(source), options.scale)
        orders = {name: tpch.in_other_order(drawn[name], source) for name in written}
        others |= {f"{name}, order {number}": sql for name, sql in orders.items() if sql is not None}
    expected = {name: oracle.execute(sql).fetchall() for name, sql in (written | others).items()}

    load = [benchmark.load_statement(table, path) for table, path in files.items()]
    failures = 0
    for topology in options.topologies.split(","):
        for way, settings in WAYS.items():
            queries = written | others if way == "as it is" else written
            memory = int(float(options.scale) * MEGABYTES_PER_SCALE)
            settings = [setting.format(memory=memory) for setting in settings]
            begin = time.monotonic()
            outcomes = run_statements(binary, load + settings, list(queries.values()), topology)
            bad = 0
            for (name, sql), outcome in zip(queries.items(), outcomes):
                failed = isinstance(outcome, StatementFailed)
                report = [str(outcome)] if failed else difference(expected[name], outcome)
                if report:
                    bad += 1
                    print(f"\nseed {options.seed}, {topology}, {way}, Q{name}: {report[0]}", *report[1:], sql, sep="\n")
            seconds = time.monotonic() - begin
            print(f"{topology}, {way}: {len(queries) - bad} of {len(queries)} agree with DuckDB {duckdb.__version__} ({seconds:.1f} s)", flush=True)
            failures += bad
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StatementFailed as failure:
        sys.exit(f"eris could not load the data: {failure}")
