"""Random statements that change rows of random tables: UPDATE, DELETE, MERGE and INSERT of what is there.

Ids stay unique, so that no row has two matches where a statement looks for one: which of them would count is up to
the engine. What fails in the oracle (a value that does not fit) is left out.
"""


def change(random, tables, oracle, attempts=6):
    """A statement that the oracle has executed."""
    import duckdb

    for _ in range(attempts):
        sql = draw(random, tables)
        try:
            oracle.execute(sql)
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            continue
        return sql
    return f"DELETE FROM {tables[0].name} WHERE {tables[0].columns[0].name} = -1"


def draw(random, tables):
    table = random.choice(tables)
    return random.choice([update, update, update_from, delete, delete_using, merge, insert])(random, table, tables)


def id_of(table):
    return f"{table.name}_id"


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"


def constant(random, column):
    if not column.domain or random.random() < 0.1:
        # A NULL without a type takes none of these where functions are given several values.
        return {"time": "CAST(NULL AS TIME)", "uuid": "CAST(NULL AS UUID)", "blob": "CAST(NULL AS BLOB)"}.get(column.kind, "NULL")
    value = literal(random.choice(column.domain))
    kinds = {"decimal": f"DECIMAL(38,{column.scale})", "day": "DATE", "timestamp": "TIMESTAMP"}
    kinds |= {"time": "TIME", "uuid": "UUID", "blob": "BLOB"}
    return f"CAST({value} AS {kinds[column.kind]})" if column.kind in kinds else value


def condition(random, table, prefix=""):
    column = random.choice(table.columns)
    name = prefix + column.name
    return random.choice([
        lambda: f"{name} IS NULL",
        lambda: f"{name} IS NOT NULL AND {prefix}{id_of(table)} % 3 = 1",
        lambda: f"{name} < {constant(random, column)}",
        lambda: f"{name} = {constant(random, column)}",
        lambda: f"{name} IN ({constant(random, column)}, {constant(random, column)})",
        lambda: f"NOT ({name} >= {constant(random, column)})",
        lambda: f"{prefix}{id_of(table)} % {random.choice([2, 7, 100])} = {random.randrange(2)}",
        lambda: f"{prefix}{id_of(table)} BETWEEN {random.randrange(1000)} AND {random.randrange(70_000)}",
        lambda: f"{prefix}{id_of(table)} IN (SELECT {table.name}_fk FROM {table.name})",
        lambda: f"{prefix}{id_of(table)} = (SELECT max({id_of(table)}) FROM {table.name})",
    ])()


def assignments(random, table, prefix=""):
    """What SET says: columns other than the id get something of their kind."""
    columns = random.sample(table.columns[1:], random.choice([1, 1, 2, 5]))
    parts = []
    for column in columns:
        alike = [other.name for other in table.columns if other.kind == column.kind]
        name = prefix + column.name
        value = random.choice([
            lambda: constant(random, column),
            lambda: prefix + random.choice(alike),
            lambda: f"coalesce({name}, {constant(random, column)})",
            lambda: f"CASE WHEN {prefix}{id_of(table)} % 2 = 0 THEN {name} ELSE {constant(random, column)} END",
            lambda: f"(SELECT min({column.name}) FROM {table.name})" if column.kind != "flag" else "NULL",
        ])()
        parts.append(f"{column.name} = {value}")
    return ", ".join(parts)


def update(random, table, tables):
    where = f" WHERE {condition(random, table)}" if random.random() < 0.9 else ""
    return f"UPDATE {table.name} SET {assignments(random, table)}{where}"


def other_than(random, table, tables):
    """The oracle's UPDATE … FROM and MERGE see their own writes when they read the table that they change."""
    return random.choice([each for each in tables if each is not table])


def update_from(random, table, tables):
    other = other_than(random, table, tables)
    source = f"(SELECT {id_of(other)} AS x, {other.name}_i32 AS y, {other.name}_txt_low AS z FROM {other.name}) AS o"
    return (
        f"UPDATE {table.name} SET {table.name}_i32 = o.y, {table.name}_txt_low = o.z FROM {source} "
        f"WHERE {table.name}.{table.name}_fk = o.x AND {condition(random, table, table.name + '.')}"
    )


def delete(random, table, tables):
    # Not too much, or nothing is left to be looked at.
    return f"DELETE FROM {table.name} WHERE {id_of(table)} % {random.choice([2, 3, 10])} = 1 AND {condition(random, table)}"


def delete_using(random, table, tables):
    other = other_than(random, table, tables)
    return (
        f"DELETE FROM {table.name} USING {other.name} "
        f"WHERE {table.name}_id = {other.name}_fk AND {condition(random, table)} AND {condition(random, other)}"
    )


def merge(random, table, tables):
    other = other_than(random, table, tables)
    offset = random.randrange(10**6, 10**9)
    name = table.name
    source = f"(SELECT {id_of(other)} * 2 AS x, {other.name}_i32 AS y FROM {other.name} WHERE {condition(random, other)}) AS o"
    clauses = [
        f"WHEN MATCHED AND {condition(random, table, 't.')} THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {name}_i32 = o.y, {assignments(random, without_i32(table), 't.')}",
        f"WHEN NOT MATCHED AND o.x % 7 = 1 THEN INSERT ({name}_id, {name}_i32) VALUES (o.x + {offset}, o.y)",
    ]
    if random.random() < 0.3:
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND t.{name}_id % 10 = 3 THEN UPDATE SET {name}_i32 = -1")
    chosen = [clause for clause in clauses if random.random() < 0.8] or clauses[:1]
    return f"MERGE INTO {name} AS t USING {source} ON t.{name}_id = o.x " + " ".join(chosen)


def without_i32(table):
    from dataclasses import replace

    return replace(table, columns=[column for column in table.columns if not column.name.endswith("_i32")])


def insert(random, table, tables):
    names = [column.name for column in table.columns]
    offset = random.randrange(10**6, 10**9)
    items = [f"{names[0]} + {offset}"] + names[1:]
    # Not twice as many each time.
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(items)} FROM {table.name} "
        f"WHERE {names[0]} % {random.choice([3, 10, 100])} = 0 AND {condition(random, table)}"
    )
