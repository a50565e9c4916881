#!/usr/bin/env python3
"""Random stars and snowflakes in eris and in DuckDB: joins of a fact and its dimensions, before and after key columns are
stored in another order, and while tables change; results compared, real numbers with a tolerance.

    stars.py                          four rounds (or ERIS_STAR_ROUNDS) from seed 1 on, or from ERIS_ORACLE_SEED; `clock` is a new seed each time
    stars.py --seed 42 --rounds 1     the round that seed 42 makes
    stars.py --keep DIR               leaves the tables and the script of each round there

A round asks, changes, asks, re-codes, asks, changes, asks, re-codes, asks. Round r of seed s is round 0 of seed s + r, so
every failure names the seed that repeats it alone. What is generated: common/random_stars.py, common/star_changes.py,
common/star_queries.py.

Exit status: 0 all results agree, 1 some do not, 2 the command line is wrong.
"""

import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from common import rounds
from common.compare import difference
from common.process import StatementFailed, run_script
from common.random_stars import make_star
from common.star_changes import change
from common.star_queries import StarQueries

RECODE = "CALL eris.recode('f')"
# Columns with a part in such an order, for whoever wants to know whether a round had any.
RECODED = "SELECT count(*) FROM eris.columns WHERE \"table\" = 'f' AND encodings LIKE '%ordinals%'"
# What DuckDB says of a few queries that it cannot answer, though nothing is wrong with them: others are drawn.
ORACLE_FAILS = {"unordered_map::at"}
# What half of the rounds switch off.
SETTINGS = ["join_reordering", "join_filters", "prefer_hash_join"]
# What is done between the questions.
PHASES = [[], ["change"], ["recode"], ["change"], ["recode"]]


def main():
    options = rounds.parser(__doc__, "ERIS_STAR_ROUNDS", 4, "star")
    options.add_argument("--queries", type=int, default=14, help="queries of a phase [%(default)s]")
    options.add_argument("--changes", type=int, default=6, help="changes between phases [%(default)s]")
    options.add_argument("--keep", metavar="DIR", help="keep tables and scripts here")
    return rounds.play(options.parse_args(), play_round)


def play_round(binary, seed, topologies, options):
    """One round; the number of statements whose results differ or that fail."""
    source = random.Random(seed)
    # Drawn apart, so that the tables and queries of a seed are the same on every list of topologies.
    topology = random.Random(f"topology {seed}").choice(topologies)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eris-stars-") as scratch:
        tables, statements = make_star(source, scratch)
        if random.Random(f"index {seed}").random() < 0.5:
            statements.append("CREATE INDEX f_by_id ON f (f_id)")
        oracle = duckdb.connect()
        for statement in statements:
            oracle.execute(statement)
        script, expected = list(statements), {}
        switching = random.Random(f"settings {seed}")
        if switching.random() < 0.5:
            script.append(f"SET {switching.choice(SETTINGS)} = off")
        generator = StarQueries(source, tables)
        changing = random.Random(f"changes {seed}")
        asked = [draw_query(generator, oracle)[0] for _ in range(options.queries // 2)]
        for phase in PHASES:
            if "change" in phase:
                script += [change(changing, tables, oracle) for _ in range(options.changes)]
            if "recode" in phase:
                script.append(RECODE)
            # The same ones each time, for what is kept of them, and new ones.
            again = [(query, oracle.execute(query.sql).fetchall()) for query in asked]
            for query, rows in again + [draw_query(generator, oracle) for _ in range(options.queries - len(asked))]:
                expected[len(script)] = query, rows
                script.append(query.sql)
        script.append(RECODED)
        if options.keep:
            keep(options.keep, seed, scratch, script)
        outcomes = run_script(binary, script, topology, options.timeout)

    failures = 0
    for place, outcome in enumerate(outcomes):
        query, rows = expected.get(place, (None, None))
        if isinstance(outcome, StatementFailed):
            report = [str(outcome)]
        else:
            report = difference(rows, outcome, query.order) if query else []
        if report:
            failures += 1
            print(f"\nseed {seed} on {topology}, statement {place}: {report[0]}", *report[1:], script[place], sep="\n")
    recoded = "?" if isinstance(outcomes[-1], StatementFailed) else outcomes[-1][0][0]
    sizes = ", ".join(f"{table.name} {table.rows:,}" for table in tables)
    empty = sum(not any(value for row in rows for value in row) for _, rows in expected.values())
    names = [table.name for table in tables if not table.unique]
    repeated = sum(any(re.search(rf"\b{name}\b", query.sql) for name in names) for query, _ in expected.values())
    seconds = time.monotonic() - begin
    print(f"seed {seed} on {topology}: {len(script) - failures} of {len(script)} agree ({empty} empty, {repeated} with keys that repeat, {recoded} columns re-coded); rows {sizes} ({seconds:.1f} s)", flush=True)
    return failures


def draw_query(generator, oracle, attempts=4):
    """A query and its expected rows; preferably some, for an empty result shows little."""
    drawn = None
    while drawn is None or attempts > 0:
        attempts -= 1
        query = generator.query()
        try:
            rows = oracle.execute(query.sql).fetchall()
        except duckdb.Error as error:
            if str(error) in ORACLE_FAILS:
                continue
            raise
        drawn = query, rows
        if any(value for row in rows for value in row):
            break
    return drawn


def keep(directory, seed, scratch, script):
    """Leaves a round behind as files that `eris -f` and, but for the procedure and the system table, DuckDB read."""
    target = Path(directory).resolve() / f"seed-{seed}"
    shutil.copytree(scratch, target, dirs_exist_ok=True)
    text = "".join(f"{sql};\n" for sql in script)
    (target / "script.sql").write_text(text.replace(scratch, str(target)))


if __name__ == "__main__":
    sys.exit(main())
