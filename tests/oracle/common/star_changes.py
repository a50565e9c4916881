"""Random changes to the tables of a star: rows that come, go and change, with keys that are known, new, NULL or gone."""

import duckdb

from common.random_queries import literal
from common.random_stars import absent


def change(random, tables, oracle, attempts=8):
    """A statement that the oracle has executed; what it rejects (a key that is there already) is drawn again."""
    for _ in range(attempts):
        table = tables[0] if random.random() < 0.5 else random.choice(tables)
        sql = random.choice([insert_values, insert_again, update, update, update_key, delete])(random, table)
        try:
            oracle.execute(sql)
        except (duckdb.ConstraintException, duckdb.ConversionException, duckdb.OutOfRangeException):
            continue
        return sql
    return "DELETE FROM f WHERE f_id < 0"


def constant(random, column):
    if not column.domain or random.random() < 0.1:
        return f"CAST(NULL AS {column.sql})"
    return f"CAST({literal(random.choice(column.domain))} AS {column.sql})"


def fresh(random, column):
    return f"CAST({literal(absent(random, column.kind, column.domain, column.sql))} AS {column.sql})"


def insert_values(random, table):
    rows = []
    for _ in range(random.choice([1, 3, 20])):
        values = [constant(random, column) for column in table.columns]
        if table.name == "f":
            values[0] = str(random.randrange(10**7, 10**9))
        elif random.random() < 0.9:
            values[0] = fresh(random, table.key)
        rows.append(f"({', '.join(values)})")
    return f"INSERT INTO {table.name} VALUES {', '.join(rows)}"


def insert_again(random, table):
    """A part of the fact once more; of a dimension nothing with a key that is there."""
    names = [column.name for column in table.columns]
    if table.name != "f":
        key = fresh(random, table.key)
        return f"INSERT INTO {table.name} SELECT {', '.join([key] + names[1:])} FROM {table.name} WHERE {condition(random, table)} ORDER BY {', '.join(names)} LIMIT 1"
    first = f"f_id + {random.randrange(10**9, 10**12)}"
    return f"INSERT INTO f SELECT {', '.join([first] + names[1:])} FROM f WHERE f_id % {random.choice([3, 10, 100])} = 1"


def update(random, table):
    columns = random.sample(table.columns[1:], random.choice([1, 1, 2]))
    parts = [f"{column.name} = {constant(random, column)}" for column in columns]
    return f"UPDATE {table.name} SET {', '.join(parts)} WHERE {condition(random, table)}"


def update_key(random, table):
    """Another key for some rows: of the fact one that is there, elsewhere a new one."""
    if table.references and random.random() < 0.7:
        column, other = random.choice(table.references)
        value = fresh(random, column) if random.random() < 0.05 else constant(random, column)
        return f"UPDATE {table.name} SET {column.name} = {value} WHERE {condition(random, table)}"
    if table.name == "f":
        return update(random, table)
    return f"UPDATE {table.name} SET {table.key.name} = {fresh(random, table.key)} WHERE {table.key.name} = {constant(random, table.key)}"


def delete(random, table):
    return f"DELETE FROM {table.name} WHERE {condition(random, table)}"


def condition(random, table):
    """A part of the rows: a few of a dimension, more of the fact."""
    if table.name == "f" and random.random() < 0.7:
        return random.choice([
            f"f_id % {random.choice([4, 11, 100])} = {random.randrange(4)}",
            f"f_id BETWEEN {random.randrange(5_000)} AND {random.randrange(10_000)}",
        ])
    column = random.choice(table.columns)
    if random.random() < 0.15:
        return f"{column.name} IS NULL"
    if column.kind == "flag":
        return f"{column.name} AND {table.key.name} = {constant(random, table.key)}"
    return f"{column.name} = {constant(random, column)}"
