#!/usr/bin/env python3
"""Random groupings with many groups in eris and in DuckDB. A core's cache does not hold them, so AEUs hash-repartition them.
Results are compared, real numbers with a tolerance.

    groups.py                          three rounds (or ERIS_GROUP_ROUNDS) from seed 1 on, or from ERIS_ORACLE_SEED; `clock` is a new seed each time
    groups.py --seed 42 --rounds 1     the round that seed 42 makes

Of each grouping the sums over all groups are compared, and some groups by themselves.

Exit status: 0 all results agree, 1 some do not, 2 the command line is wrong.
"""

import random
import sys
import time

import duckdb

from common import rounds
from common.compare import difference
from common.process import StatementFailed, run_script

# Values that follow from the row's number, so that both sides make the same ones.
KEYS = ["k", "l", "t", "d", "x", "small", "together", "k % 50000", "day"]
AGGREGATES = ["count(*)", "count(l)", "sum(v)", "min(v)", "max(v)", "sum(k)", "avg(v)", "min(t)", "max(t)", "sum(d)",
              "max(d)", "min(x)", "max(day)", "sum(x)"]
# Strings, days: what is compared of them.
MEASURES = {"min(t)": "length({})", "max(t)": "length({})", "max(day)": "year({})"}
CONDITIONS = ["small < 3", "v % 2 = 0", "k IS NOT NULL", "t > 'text 5'", "v % 1000 = 7"]


def main():
    options = rounds.parser(__doc__, "ERIS_GROUP_ROUNDS", 3, "table")
    options.add_argument("--queries", type=int, default=16, help="queries of a round [%(default)s]")
    return rounds.play(options.parse_args(), play_round)


def play_round(binary, seed, topologies, options):
    """One round; the number of statements whose results differ or that fail."""
    source = random.Random(seed)
    topology = topologies[seed % len(topologies)]
    begin = time.monotonic()
    script, expected = [make_table(source)], {}
    oracle = duckdb.connect()
    oracle.execute(script[0])
    for _ in range(options.queries):
        for query, ordered in make_queries(source):
            expected[len(script)] = oracle.execute(query).fetchall(), ordered
            script.append(query)
    failures = 0
    for place, outcome in enumerate(run_script(binary, script, topology, options.timeout)):
        if isinstance(outcome, StatementFailed):
            report = [str(outcome)]
        else:
            rows, ordered = expected.get(place, (None, None))
            report = difference(rows, outcome, ordered) if rows is not None else []
        if report:
            failures += 1
            print(f"\nseed {seed} on {topology}, statement {place}: {report[0]}", *report[1:], script[place], sep="\n")
    print(f"seed {seed} on {topology}: {len(script) - failures} of {len(script)} agree ({time.monotonic() - begin:.1f} s)", flush=True)
    return failures


def make_table(source):
    rows = source.randint(280_000, 700_000)
    k, l, t, d = (source.choice([300, 20_000, 90_000, 400_000]) for _ in range(4))
    return f"""CREATE TABLE g AS SELECT
        CASE WHEN i % 101 = 3 THEN NULL ELSE (i * 7919) % {k} END AS k,
        CASE WHEN i % 7 = 3 THEN NULL ELSE (i * 104729) % {l} - {l // 2} END AS l,
        CASE WHEN i % 53 = 9 THEN NULL ELSE 'text ' || ((i * 611953) % {t}) END AS t,
        CAST((i * 15485863) % {d} AS DECIMAL(30, 2)) AS d,
        CAST((i * 31) % 60000 AS DOUBLE) / 8 AS x,
        i % 5 AS small, i - i % {source.choice([3, 40, 900])} AS together,
        DATE '1970-01-01' + CAST(i % 30000 AS INTEGER) AS day, i AS v
        FROM generate_series(1, {rows}) AS s(i)"""


def make_queries(source):
    """A grouping: all groups together, and some by themselves."""
    keys = source.sample(KEYS, source.choice([1, 1, 1, 2, 2, 3]))
    aggregates = source.sample(AGGREGATES, source.randint(1, 4))
    columns = [f"{key} AS k{number}" for number, key in enumerate(keys)]
    for number, aggregate in enumerate(aggregates):
        filtered = f" FILTER (WHERE {source.choice(CONDITIONS)})" if source.random() < 0.25 else ""
        columns.append(f"{aggregate}{filtered} AS a{number}")
    where = f" WHERE {source.choice(CONDITIONS)}" if source.random() < 0.25 else ""
    inner = f"SELECT {', '.join(columns)} FROM g{where} GROUP BY {', '.join(keys)}"
    sums = ["count(*)"]
    for number, aggregate in enumerate(aggregates):
        measure = MEASURES.get(aggregate, "{}").format(f"a{number}")
        sums += [f"sum({measure})", f"count(a{number})"]
    order = ", ".join(f"k{number} NULLS FIRST" for number in range(len(keys)))
    yield f"SELECT {', '.join(sums)} FROM ({inner})", None
    yield f"SELECT * FROM ({inner}) ORDER BY {order} LIMIT 20 OFFSET {source.randint(0, 200)}", list(range(len(keys)))


if __name__ == "__main__":
    sys.exit(main())
