"""How each peer loads the five Parquet files and runs a query, at the best settings that were found for it.

All run the same texts; nothing is denormalised, sorted or aggregated beforehand. Engines that join in the order of FROM are
given the tables in a good one (`in_join_order`), the only change of a text.
"""

import json
import os
import re

from .process import serve

CORES = len(os.sched_getaffinity(0))
DATAFUSION_BATCH_ROWS = 122_880
# A string column with more values than this keeps its strings: the names, addresses and phone numbers.
FEW_VALUES = 10_000

# The fact table, then the others, those first of which the fewest rows are left. By query, or by the first half of its
# number.
JOIN_ORDER = {
    "1": "lineorder, date",
    "2": "lineorder, part, supplier, date",
    "3": "lineorder, supplier, customer, date",
    "4.1": "lineorder, supplier, customer, part, date",
    "4.2": "lineorder, supplier, customer, date, part",
    "4.3": "lineorder, supplier, part, customer, date",
}


def in_join_order(name, sql):
    tables = JOIN_ORDER.get(name) or JOIN_ORDER[name.split(".")[0]]
    return re.sub(r"(?<=\nfrom ).*", tables, sql, count=1)


def duckdb(pipe, files):
    """In-memory tables, threads as cores, strings with few values as ENUM, values in alphabetical order."""
    import duckdb

    def load():
        connection = duckdb.connect(config={"threads": CORES})
        for name, path in files.items():
            columns = []
            for column, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall():
                if kind == "VARCHAR" and is_few(connection, path, column):
                    values = f"SELECT DISTINCT {column} FROM '{path}' ORDER BY 1"
                    connection.execute(f"CREATE TYPE {column}_t AS ENUM ({values})")
                    columns.append(f"{column}::{column}_t AS {column}")
                else:
                    columns.append(column)
            connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM '{path}'")
        return connection

    def is_few(connection, path, column):
        (count,) = connection.execute(f"SELECT approx_count_distinct({column}) FROM '{path}'").fetchone()
        return count <= FEW_VALUES

    serve(pipe, f"DuckDB {duckdb.__version__}", load, lambda connection, _, sql: connection.execute(sql).fetchall())


def hyper(pipe, files):
    """Temporary tables."""
    import tableauhyperapi as api

    # With the process, which is kept by this frame, its tables go.
    process = api.HyperProcess(api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters={"log_config": ""})
    with process, api.Connection(process.endpoint) as connection:

        def load():
            for name, path in files.items():
                connection.execute_command(f"CREATE TEMP TABLE \"{name}\" AS (SELECT * FROM external('{path}'))")
            return connection

        def run(connection, _, sql):
            as_python = lambda value: value.to_date() if isinstance(value, api.Date) else value
            return [[as_python(value) for value in row] for row in connection.execute_list_query(sql)]

        serve(pipe, f"Hyper {api.__version__}", load, run)


def clickhouse(pipe, files):
    """Memory tables, strings with few values as LowCardinality. Plain hash joins in the given order: its own choices are
    several times slower."""
    import chdb

    settings = {
        "max_threads": CORES,
        "join_algorithm": "'hash'",
        "query_plan_optimize_join_order_limit": 0,
        "enable_join_runtime_filters": 0,
        "output_format_json_quote_64bit_integers": 0,
    }

    def query(connection, sql):
        return [json.loads(line) for line in connection.query(sql, "JSONCompactEachRow").bytes().splitlines()]

    def load():
        connection = chdb.connect(":memory:")
        for name, value in settings.items():
            connection.query(f"SET {name} = {value}")
        connection.query("SET schema_inference_make_columns_nullable = 0")
        for name, path in files.items():
            file = f"file('{path}')"
            columns = []
            for column, kind, *_ in query(connection, f"DESCRIBE {file}"):
                is_string = kind == "String"
                if is_string and query(connection, f"SELECT uniq({column}) FROM {file}")[0][0] <= FEW_VALUES:
                    columns.append(f"toLowCardinality({column}) AS {column}")
                else:
                    columns.append(column)
            connection.query(f"CREATE TABLE {name} ENGINE = Memory AS SELECT {', '.join(columns)} FROM {file}")
        return connection

    version = query(chdb.connect(":memory:"), "SELECT version()")[0][0]
    run = lambda connection, name, sql: query(connection, in_join_order(name, sql))  # noqa: E731
    serve(pipe, f"ClickHouse {version}", load, run)


# Polars sums 32-bit integers in 32 bits, and silently wraps.
SUMMED = ["lo_extendedprice", "lo_revenue", "lo_supplycost"]


def polars(pipe, files):
    """Data frames, strings with few values as Enum, other integers than keys as narrow as they can be. Its SQL has the tables
    in a good order."""
    import polars as pl

    def load():
        context = pl.SQLContext()
        for name, path in files.items():
            # A column at a time: all of them as they are in the file would take several times the memory of the result.
            titles = pl.read_parquet_schema(path)
            context.register(name, pl.DataFrame([stored(pl.read_parquet(path, columns=[title])[title]) for title in titles]))
        return context

    def stored(column):
        if column.dtype == pl.String:
            values = column.unique().sort() if column.approx_n_unique() <= 2 * FEW_VALUES else []
            return (column.cast(pl.Enum(values)) if 0 < len(values) <= FEW_VALUES else column).rechunk()
        if column.name in SUMMED:
            return column.cast(pl.Int64).rechunk()
        is_key = column.name.endswith(("key", "date"))
        return (column if is_key else column.shrink_dtype()).rechunk()

    def run(context, name, sql):
        return context.execute(in_join_order(name, sql)).collect().rows()

    serve(pipe, f"Polars {pl.__version__}", load, run)


def datafusion(pipe, files):
    """MemTable, one partition per core, strings with few values dictionary-encoded, batches of 122,880 rows."""
    import datafusion
    import pyarrow as pa
    import pyarrow.parquet as pq

    def load():
        config = datafusion.SessionConfig().with_target_partitions(CORES).with_batch_size(DATAFUSION_BATCH_ROWS)
        context = datafusion.SessionContext(config)
        for name, path in files.items():
            strings = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
            table = pq.read_table(path, read_dictionary=strings).unify_dictionaries()
            for column in strings:
                values = table.column(column)
                if values.num_chunks and len(values.chunk(0).dictionary) > FEW_VALUES:
                    position = table.schema.get_field_index(column)
                    table = table.set_column(position, column, values.cast(pa.string()))
            batches = table.to_batches(max_chunksize=DATAFUSION_BATCH_ROWS)
            partitions = [part for core in range(CORES) if (part := batches[core::CORES])]
            context.register_record_batches(name, partitions)
            del table, batches, partitions
        pa.default_memory_pool().release_unused()
        return context

    def run(context, _name, sql):
        batches = context.sql(sql).collect()
        return [list(row.values()) for batch in batches for row in batch.to_pylist()]

    serve(pipe, f"DataFusion {datafusion.__version__}", load, run)


PEERS = {"duckdb": duckdb, "hyper": hyper, "clickhouse": clickhouse, "polars": polars, "datafusion": datafusion}
