"""The Star Schema Benchmark's tables and query texts, from the one place where they are kept."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLES = ["date", "customer", "supplier", "part", "lineorder"]


def queries():
    """The thirteen queries by their ids, "1.1" to "4.3"."""
    files = sorted((ROOT / "crates/ssb/queries").glob("q*.sql"))
    return {file.stem[1:]: file.read_text().strip() for file in files}


def order_columns(sql, columns):
    """Positions among `columns` of what a benchmark query sorts by."""
    clause = re.search(r"\border by (.*)$", sql, re.DOTALL)
    if clause is None:
        return []
    return [columns.index(item.split()[0]) for item in clause.group(1).split(",")]


def parquet(directory, table):
    """The file of a table; the run ends with a message if it is missing."""
    path = Path(directory) / f"{table}.parquet"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: `eris ssb generate --out {directory}` makes it")
    return path.resolve()


def load_statement(table, path):
    """Reads a file into a table; understood by eris and DuckDB alike."""
    return f"CREATE TABLE {table} AS SELECT * FROM '{path}'"
