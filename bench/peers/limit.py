"""The fewest bytes that a star query has to read, whoever runs it: what the memory's bandwidth allows at best.

Every column of the fact table takes ⌈log2 of its distinct values⌉ bits per row. A query has conditions on some columns –
one that is joined has the condition that its row of the other table passes – and needs others for its result. The first
condition reads its column in full. Each further one, and the result, reads the cache lines in which rows are left:

    lo_partkey   ████████████████   all lines        condition 1
    lo_suppkey   ██ █  █ ███  █     lines with rows that passed 1        condition 2
    lo_revenue    █    █   █        lines with rows that passed 1 and 2

The conditions take the order that reads least. A value that reaches into the next line counts for its first. Nothing is
counted for the other tables, groups and arithmetic, and no column is supposed to be sorted.
"""

import functools
import itertools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

LINE_BYTES = 64
CACHE = "ssb-limit.json"
# Of the entries in the cache; one more whenever what they say is computed differently.
VERSION = 1

FACT = re.compile(r"\blo_\w+")
JOIN = re.compile(r"(lo_\w+) = ([a-z]_\w+)")
# The dimensions by the prefix of their columns.
DIMENSIONS = {"c": "customer", "s": "supplier", "p": "part", "d": "date"}


@dataclass
class Reads:
    """What a query reads of the fact table."""

    conditions: dict  # Column: condition on its rows, in SQL.
    outputs: list  # Columns that only the result needs.


def reads(sql):
    """From a benchmark query's text, whose conditions stand one per line."""
    keys, of_dimension, conditions = {}, {}, {}
    where = re.search(r"^where (.*?)(?=^group by|\Z)", sql, re.DOTALL | re.MULTILINE).group(1)
    for condition in where.strip().split("\n  and "):
        join = JOIN.fullmatch(condition)
        if join:
            keys[join.group(2)[0]] = (join.group(1), join.group(2))
            continue
        column = re.search(r"\b[a-z]+_\w+", condition).group()
        place, name = (conditions, column) if column.startswith("lo_") else (of_dimension, column[0])
        place[name] = f"{place[name]} AND {condition}" if name in place else condition
    for prefix, condition in of_dimension.items():
        column, key = keys[prefix]
        conditions[column] = f"{column} IN (SELECT {key} FROM {DIMENSIONS[prefix]} WHERE {condition})"
    selected = sql[: sql.index("\nfrom")]
    outputs = set(FACT.findall(selected))
    outputs |= {column for prefix, (column, _) in keys.items() if re.search(rf"\b{prefix}_\w+", selected)}
    return Reads(conditions, sorted(outputs - conditions.keys()))


class Limits:
    """Computes with a DuckDB connection that has the tables, `lineorder` with its rows' numbers as column `row`."""

    def __init__(self, connection):
        self.connection = connection
        self.rows = self.one("SELECT count(*) FROM lineorder")
        self.known_bits = {}

    def bits(self, column):
        if column not in self.known_bits:
            distinct = self.one(f"SELECT count(DISTINCT {column}) FROM lineorder")
            self.known_bits[column] = math.ceil(math.log2(max(1, distinct)))
        return self.known_bits[column]

    def one(self, sql):
        return self.connection.execute(sql).fetchone()[0]

    def full(self, column):
        return math.ceil(self.rows * self.bits(column) / 8)

    def bytes(self, sql):
        """The bytes that a query reads at least."""
        wanted = reads(sql)
        columns = list(wanted.conditions)
        # Which conditions each row passes, a bit each; rows that pass none are left out.
        texts = wanted.conditions.values()
        flags = " | ".join(f"(CASE WHEN {text} THEN {1 << bit} ELSE 0 END)" for bit, text in enumerate(texts))
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE passing AS"
            f" SELECT * FROM (SELECT row, {flags} AS passed FROM lineorder) WHERE passed > 0"
        )

        @functools.cache
        def left(passed, column):
            """Bytes of a column in lines with rows that pass these conditions; all where there are none."""
            if not passed:
                return self.full(column)
            lines = self.one(
                f"SELECT count(*) FROM (SELECT DISTINCT row * {self.bits(column)} // {LINE_BYTES * 8} FROM passing"
                f" WHERE passed & {passed} = {passed})"
            )
            return min(self.full(column), lines * LINE_BYTES)

        def total(order):
            passed, bytes = 0, 0
            for place in order:
                bytes += left(passed, columns[place])
                passed |= 1 << place
            return bytes + sum(left(passed, column) for column in wanted.outputs)

        least = min(total(order) for order in itertools.permutations(range(len(columns))))
        self.connection.execute("DROP TABLE passing")
        return least


def connect(files):
    """A DuckDB connection with a view per Parquet file."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    for table, path in files.items():
        number = ", file_row_number AS row" if table == "lineorder" else ""
        option = ", file_row_number = true" if table == "lineorder" else ""
        connection.execute(f"CREATE VIEW {table} AS SELECT *{number} FROM read_parquet('{path}'{option})")
    return connection


def cached(connection, directory, queries, say):
    """Bytes by query; what is not in the data directory's cache yet is computed and added to it."""
    path = Path(directory) / CACHE
    known = json.loads(path.read_text()) if path.is_file() else {}
    limits = Limits(connection)
    keys = {name: f"{VERSION} {sql}" for name, sql in queries.items()}
    for name, sql in queries.items():
        if keys[name] not in known:
            say(f"least bytes of Q{name} …")
            known[keys[name]] = limits.bytes(sql)
            path.write_text(json.dumps(known, indent=1) + "\n")
    return {name: known[key] for name, key in keys.items()}


def bandwidth(report):
    """Sequential reads, all cores of each node in its own memory, in bytes/s, of the report of `eris machine --json`."""
    reads = [row for row in report["rows"] if row["case"] == "sequential read"]
    return sum(row["value"] for row in reads if row["params"]["source"] == row["params"]["home"]) * 1e9
