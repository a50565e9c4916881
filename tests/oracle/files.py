#!/usr/bin/env python3
"""Files both ways: DuckDB and Arrow read what Eris writes, and Eris reads what DuckDB and Arrow write."""

import datetime
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import duckdb
import pyarrow.feather
import pyarrow.ipc

from common.compare import expected_value

ERIS = os.environ.get("ERIS", "eris")
COLUMNS = (
    "k INTEGER, b BOOLEAN, i8 TINYINT, u16 USMALLINT, u64 UBIGINT, r REAL, d DOUBLE, m DECIMAL(12,2), w DECIMAL(38,10), "
    "t VARCHAR, day DATE, us TIMESTAMP, tm TIME, u UUID, b0 BLOB"
)
ROWS = """SELECT i, i % 3 = 0, i % 128, i % 65536, 18446744073709551615 - i, i / 4, i / 8,
    CAST(i AS DECIMAL(12,2)) / 4, CAST(i AS DECIMAL(28,10)) + 0.25,
    CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'a "quoted", text' WHEN 2 THEN 'two
lines' WHEN 3 THEN 'äöü;|' ELSE 'plain ' || i END,
    DATE '2001-02-03' + CAST(i AS INTEGER), TIMESTAMP '1969-12-31 23:59:59.999999' + to_microseconds(i * 1234567),
    TIME '00:00:00.25' + to_seconds(i), CAST(md5(CAST(i AS VARCHAR)) AS UUID),
    CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN CAST('\\xFF\\x00' || i AS BLOB) ELSE CAST('plain' AS BLOB) END
    FROM range(20000) AS g(i)"""
CHECK = (
    "SELECT count(*), count(t), sum(k), sum(i8), sum(u16), sum(m), sum(w), count(*) FILTER (WHERE b), min(u64), max(t), "
    "min(day), max(us), sum(length(t)), min(tm), max(tm), min(u), max(u), count(b0), max(b0), sum(octet_length(b0)) FROM {}"
)


def eris(sql):
    """What Eris prints, as CSV without header."""
    run = subprocess.run([ERIS, "--format", "csv", "-c", sql], capture_output=True, text=True, timeout=60)
    if run.returncode != 0:
        raise AssertionError(f"{sql}: {run.stderr}")
    return run.stdout.splitlines()[1:]


def shown(value):
    """As Eris shows it."""
    return str(expected_value(value) if isinstance(value, (bytes, datetime.time)) else value)


class Files(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.duckdb = duckdb.connect()
        self.duckdb.execute(f"CREATE TABLE t ({COLUMNS})")
        self.duckdb.execute(f"INSERT INTO t {ROWS}")
        self.duckdb.execute(f"COPY t TO '{self.path('in.parquet')}'")
        self.expected = self.check("t")

    def path(self, name):
        return str(self.directory / name)

    def check(self, source):
        (row,) = self.duckdb.execute(CHECK.format(source)).fetchall()
        return [shown(value) for value in row]

    def eris_check(self, statements):
        (line,) = eris(f"CREATE TABLE t ({COLUMNS}); {statements}; {CHECK.format('t')}")
        # The only text in it has no comma.
        return [value.replace("T", " ") for value in line.split(",")]

    def test_eris_reads_what_duckdb_writes(self):
        for name, options in [
            ("x.csv", ""),
            ("x.csv.gz", "(DELIMITER '|', NULLSTR 'n/a')"),
            ("y.csv.zst", "(HEADER false, QUOTE '''', ESCAPE '''')"),
            ("x.parquet", "(COMPRESSION snappy)"),
            ("x.json", ""),
            ("y.json", "(ARRAY true)"),
        ]:
            with self.subTest(name):
                self.duckdb.execute(f"COPY t TO '{self.path(name)}' {options}")
                options = options.replace("(ARRAY true)", "").replace("(COMPRESSION snappy)", "")
                found = self.eris_check(f"COPY t FROM '{self.path(name)}' {options}")
                self.assertEqual(found, self.expected)

    def test_duckdb_reads_what_eris_writes(self):
        targets = {
            "x.csv": "read_csv('{}', all_varchar => false, header => true, types => {{'t': 'VARCHAR', 'i8': 'TINYINT', 'u': 'UUID', "
            "'m': 'DECIMAL(12,2)', 'w': 'DECIMAL(38,10)', 'u64': 'UBIGINT', 'b0': 'VARCHAR'}})",
            "x.csv.gz": "read_csv('{}', types => {{'m': 'DECIMAL(12,2)', 'w': 'DECIMAL(38,10)', 'u64': 'UBIGINT', 'b0': 'VARCHAR', 'u': 'UUID'}})",
            "x.parquet": "'{}'",
            "x.jsonl": "read_json('{}', columns => {{"
            + ", ".join(f"'{column.split()[0]}': '{column.split()[1].replace('BLOB', 'VARCHAR')}'" for column in self.columns())
            + "}})",
        }
        copies = "; ".join(f"COPY t TO '{self.path(name)}'" for name in targets)
        eris(f"CREATE TABLE t ({COLUMNS}); COPY t FROM '{self.path('in.parquet')}'; {copies}")
        for name, source in targets.items():
            with self.subTest(name):
                # DuckDB takes the text of a BLOB in a text file for its bytes; a CAST reads it as it was written.
                rows = f"(SELECT * REPLACE (CAST(b0 AS BLOB) AS b0) FROM {source.format(self.path(name))})"
                self.assertEqual(self.check(rows), self.expected)

    def columns(self):
        # A comma within parentheses separates no columns.
        return [column.replace(";", ",") for column in COLUMNS.replace("12,2", "12;2").replace("38,10", "38;10").split(", ")]

    def test_arrow_both_ways(self):
        table = self.duckdb.sql("SELECT * FROM t").to_arrow_table()
        pyarrow.feather.write_feather(table, self.path("x.feather"), compression="lz4")
        with pyarrow.ipc.new_stream(self.path("x.arrows"), table.schema) as stream:
            stream.write_table(table)
        for name in ("x.feather", "x.arrows"):
            copies = f"COPY t FROM '{self.path(name)}'; COPY t TO '{self.path('back.arrow')}'; COPY t TO '{self.path('back.arrows')}'"
            self.assertEqual(self.eris_check(copies), self.expected)
        back = pyarrow.ipc.open_file(self.path("back.arrow")).read_all()
        self.duckdb.register("back", back)
        self.assertEqual(self.check("back"), self.expected)
        back = pyarrow.ipc.open_stream(self.path("back.arrows")).read_all()
        self.duckdb.register("back", back)
        self.assertEqual(self.check("back"), self.expected)

    def test_a_database_moves_both_ways(self):
        self.duckdb.execute("CREATE TABLE \"Two Words\" (a INTEGER NOT NULL, b VARCHAR DEFAULT 'it''s')")
        self.duckdb.execute("INSERT INTO \"Two Words\" VALUES (1, ''), (2, NULL)")
        self.duckdb.execute(f"EXPORT DATABASE '{self.path('duck')}' (FORMAT parquet)")
        lines = eris(
            f"IMPORT DATABASE '{self.path('duck')}'; EXPORT DATABASE '{self.path('eris')}'; "
            f"INSERT INTO \"Two Words\" (a) VALUES (3); SELECT a, b FROM \"Two Words\" ORDER BY a"
        )
        self.assertEqual(lines, ['1,""', "2,", "3,it's"])
        other = duckdb.connect()
        other.execute(f"IMPORT DATABASE '{self.path('eris')}'")
        self.assertEqual(other.execute("SELECT * FROM \"Two Words\" ORDER BY a").fetchall(), [(1, ""), (2, None)])
        self.assertEqual([shown(value) for value in other.execute(CHECK.format("t")).fetchone()], self.expected)


if __name__ == "__main__":
    unittest.main()
