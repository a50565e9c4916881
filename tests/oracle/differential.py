#!/usr/bin/env python3
"""Random tables, random changes to them and random queries in eris and in DuckDB; results compared, real numbers with a tolerance.

    differential.py                          six rounds (or ERIS_ORACLE_ROUNDS) from seed 1 on, or from ERIS_ORACLE_SEED; `clock` is a new seed each time
    differential.py --seed 42 --rounds 1     the round that seed 42 makes
    ERIS_MEMORY=32MB differential.py         the same in little memory, where sorts, aggregates and joins spill
    differential.py --keep DIR               leaves the tables and the script of each round there

Round r of seed s is round 0 of seed s + r, so every failure names the seed that repeats it alone. What is generated and
what is left out: common/random_tables.py, common/random_changes.py, common/random_queries.py, common/random_wide.py,
common/random_correlated.py, common/random_macros.py.

Exit status: 0 all results agree, 1 some do not, 2 the command line is wrong.
"""

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from common import rounds
from common.benchmark import load_statement
from common.compare import difference
from common.process import StatementFailed, run_statements
from common.random_changes import change
from common.random_correlated import CorrelatedGenerator
from common.random_macros import MacroGenerator
from common.random_queries import Query
from common.random_wide import WideGenerator
from common.random_tables import make_rewritten, make_table, make_view

# Around the chunk of 65,536 rows, and what has no full chunk or several; each round takes one of them.
LARGE = [0, 1, 65_535, 65_536, 65_537, 200_000]
SMALL = [0, 1, 2, 100, 1_023, 1_024, 1_025, 5_000]

# Who scans the chunks of a node, where there are several; each round takes one of them.
STRATEGIES = ["auto", "pull", "push"]


def main():
    options = rounds.parser(__doc__, "ERIS_ORACLE_ROUNDS", len(LARGE), "tables")
    options.add_argument("--queries", type=int, default=45, help="queries of a round [%(default)s]")
    correlated = "queries of a round with subqueries that refer to rows around them [%(default)s]"
    options.add_argument("--correlated", type=int, default=15, help=correlated)
    options.add_argument("--macros", type=int, default=10, help="queries of a round that call macros [%(default)s]")
    options.add_argument("--changes", type=int, default=12, help="changes of a round [%(default)s]")
    options.add_argument("--keep", metavar="DIR", help="keep tables and scripts here")
    return rounds.play(options.parse_args(), play_round)


def play_round(binary, seed, topologies, options):
    """One round; the number of queries whose results differ."""
    source = random.Random(seed)
    # Drawn apart, so that the tables and queries of a seed are the same on every list of topologies.
    topology = random.Random(f"topology {seed}").choice(topologies)
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eris-differential-") as scratch:
        tables = [
            make_table(source, "a", LARGE[seed % len(LARGE)], scratch),
            make_table(source, "b", source.choice(SMALL), scratch),
            make_table(source, "c", source.choice(SMALL + [20_000]), scratch),
        ]
        setup = [load_statement(table.name, table.path) for table in tables]
        for make in (make_rewritten, make_view):
            table, statements = make(source, tables, scratch)
            tables.append(table)
            setup += statements
        oracle = duckdb.connect()
        for statement in setup:
            oracle.execute(statement)
        # Drawn apart, so that the queries of a seed stay the same whatever changes there are.
        changing = random.Random(f"changes {seed}")
        changed = [table for table in tables if table.name != "e"]
        setup += [change(changing, changed, oracle) for _ in range(options.changes)]

        generator = WideGenerator(source, tables)
        queries, expected = [], []
        for _ in range(options.queries):
            query, rows = draw_query(generator, oracle)
            queries.append(query)
            expected.append(rows)
        # Drawn apart, for the same reason as the changes.
        correlated = CorrelatedGenerator(random.Random(f"correlated {seed}"), [table for table in tables if table.name != "e"])
        for _ in range(options.correlated):
            query, rows = draw_query(correlated, oracle)
            queries.append(query)
            expected.append(rows)
        macros = MacroGenerator(random.Random(f"macros {seed}"), [table for table in tables if table.name != "e"])
        for statement in macros.definitions:
            oracle.execute(statement)
        setup += macros.definitions
        for _ in range(options.macros):
            query, rows = draw_query(macros, oracle)
            queries.append(query)
            expected.append(rows)
        for table in changed:
            query = whole(table)
            queries.append(query)
            expected.append(oracle.execute(query.sql).fetchall())
        if options.keep:
            keep(options.keep, seed, scratch, setup, queries)
        # Not DuckDB's, so that it is in no script that is kept.
        setup.insert(0, f"SET numa_strategy = {strategy}")
        outcomes = run_statements(binary, setup, [query.sql for query in queries], topology, options.timeout)

    failures = 0
    for query, rows, outcome in zip(queries, expected, outcomes):
        if isinstance(outcome, StatementFailed):
            report = [str(outcome)]
        else:
            report = difference(rows, outcome, query.order)
        if report:
            failures += 1
            print(f"\nseed {seed} on {topology}, {strategy}: {report[0]}", *report[1:], query.sql, sep="\n")
    sizes = ", ".join(f"{table.name} {table.rows:,}" for table in tables)
    empty = sum(not rows for rows in expected)
    seconds = time.monotonic() - begin
    agreed = len(queries) - failures
    print(f"seed {seed} on {topology}, {strategy}: {agreed} of {len(queries)} agree ({empty} empty); rows {sizes} ({seconds:.1f} s)")
    return failures


def whole(table):
    """What a table holds, in one row."""
    counts = ", ".join(f"count({column.name}), count(DISTINCT {column.name})" for column in table.columns)
    sums = ", ".join(
        f"sum({column.name})" for column in table.columns if column.kind == "decimal" or column.name.endswith(("_id", "_i32"))
    )
    return Query(f"SELECT count(*) AS n, {counts}, {sums} FROM {table.name}")


def draw_query(generator, oracle, attempts=4):
    """A query and its expected rows; preferably some, for an empty result shows little."""
    answered = Query("SELECT 1 AS c0"), [(1,)]
    for _ in range(attempts):
        query = generator.query()
        try:
            rows = oracle.execute(query.sql).fetchall()
        except duckdb.ConversionException:
            # A value that does not fit: which rows a query evaluates is up to the engine.
            continue
        answered = query, rows
        if rows:
            break
    return answered


def keep(directory, seed, scratch, setup, queries):
    """Leaves a round behind as files that `eris -f` and DuckDB both read."""
    target = Path(directory).resolve() / f"seed-{seed}"
    shutil.copytree(scratch, target, dirs_exist_ok=True)
    statements = [statement.replace(scratch, str(target)) for statement in setup]
    statements += [query.sql for query in queries]
    (target / "script.sql").write_text("".join(f"{sql};\n" for sql in statements))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StatementFailed as failure:
        sys.exit(f"eris could not load the tables: {failure}")
