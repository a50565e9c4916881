"""Random stars and snowflakes: one fact, its dimensions, and the tables that these refer to, as statements and Parquet files.

    f    f_id (unique), f_k0 … (one or two per dimension), measures and attributes
    d0   its key, d0_up (key of s0, if there is one), a hierarchy d0_city → d0_nation → d0_region, attributes of every kind
    s0   what d0 refers to; u0 is what s0 refers to

Keys are dense, with gaps, 10^12 apart, negative, days, timestamps, decimals or strings. On either side of a join they may be
NULL or missing. They may be there more than once: some of them twice, each one to several times, or one very often. Integers
of both sides have widths of their own. Two numbers are small enough to be multiplied and summed in 64 bits, and fractions are
binary, so that sums are exact.
"""

import datetime
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

INTEGERS = {
    "TINYINT": (pa.int8(), -(2**7), 2**7 - 1),
    "SMALLINT": (pa.int16(), -(2**15), 2**15 - 1),
    "USMALLINT": (pa.uint16(), 0, 2**16 - 1),
    "INTEGER": (pa.int32(), -(2**31), 2**31 - 1),
    "UINTEGER": (pa.uint32(), 0, 2**32 - 1),
    "BIGINT": (pa.int64(), -(2**63), 2**63 - 1),
}
OTHERS = {
    "DOUBLE": pa.float64(),
    "DECIMAL(12,2)": pa.decimal128(12, 2),
    "DECIMAL(15,2)": pa.decimal128(15, 2),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
}
NULL_RATES = [0.0, 0.0, 0.0, 0.03, 0.3]
COLORS = ["red", "green", "blue", "", "bl", "Grün", "青", "x' y", "100%"]
# Only full chunks, of 65,536 rows at one owner, are stored in another order.
FACTS = [5_000, 40_000, 140_000, 140_000, 270_000]
# How many dimensions of a star may have many keys more than once: their numbers multiply.
MOST_REPEATED = 2
# A fact of such a star has no more rows.
MOST_FACTS_REPEATED = 140_000
# From about a million rows on, joins have that done in the background.
LARGE_FACT = 1_200_000


@dataclass
class Column:
    name: str
    sql: str  # its type
    kind: str  # integer, small (may be multiplied), double, decimal, string, day, timestamp, flag
    domain: list = field(default_factory=list)  # some values that occur


@dataclass
class Table:
    name: str
    columns: list
    rows: int
    key: Column = None
    unique: bool = True  # its key
    repeated: bool = False  # many of its keys are there more than once
    # Which column of this table is joined to the key of which other.
    references: list = field(default_factory=list)
    values: dict = field(default_factory=dict)  # the keys, for whoever refers to it


def arrow(sql):
    return INTEGERS[sql][0] if sql in INTEGERS else OTHERS[sql]


def make_star(random, directory):
    """The tables, the fact first, and the statements that make them."""
    tables, statements = [], []
    for number in range(random.choice([1, 2, 2, 3, 3, 4, 5])):
        above = None
        for level in range(random.choice([1, 1, 1, 2, 3]), 0, -1):
            repeated = sum(table.repeated for table in tables)
            above = make_dimension(random, f"{'dsu'[level - 1]}{number}", above, repeated, directory, statements)
            tables.append(above)
    fact = make_fact(random, [table for table in tables if table.name[0] == "d"], directory, statements)
    return [fact] + tables, statements


def make_dimension(random, name, above, repeated, directory, statements):
    rows = random.choice([0, 1, 4, 25, 25, 25, 200, 200, 200, 1_000, 1_000, 2_500])
    sql, kind, keys = draw_keys(random, rows)
    unique = random.random() < 0.65 or rows < 2
    stored = list(keys)
    how = None if unique else random.choice(["twice", "each", "often"]) if repeated < MOST_REPEATED else "twice"
    if how == "twice":
        for _ in range(random.choice([1, 3])):
            stored[random.randrange(rows)] = random.choice(keys)
    elif how == "each":
        some = keys[: max(1, rows * 2 // 5)]
        stored = [random.choice(some) for _ in range(rows)]
    elif how == "often":
        key = random.choice(keys)
        for _ in range(random.choice([3, 5] if repeated else [5, 16, 40])):
            stored[random.randrange(rows)] = key
    there = set(stored)
    keys = [key for key in keys if key in there]
    null_keys = random.random() < 0.15
    if null_keys:
        stored = [None if random.random() < 0.05 else key for key in stored]
    table = Table(name, [], rows, unique=unique, repeated=how in ("each", "often"), values=keys)
    arrays = []

    def add(suffix, sql, kind, values, nulls=True):
        rate = random.choice(NULL_RATES) if nulls else 0.0
        values = [None if random.random() < rate else value for value in values] if rate else values
        table.columns.append(column_of(random, f"{name}_{suffix}", sql, kind, values))
        arrays.append(pa.array(values, arrow(sql)))
        return table.columns[-1]

    add("key", sql, kind, stored, nulls=False)
    table.key = table.columns[0]
    if above is not None:
        refer(random, table, above, "up", rows, add)
    cities = [random.randrange(random.choice([5, 60])) for _ in range(rows)]
    add("city", "VARCHAR", "string", [f"city {city}" for city in cities])
    add("nation", "VARCHAR", "string", [f"nation {city % 12}" for city in cities])
    add("region", *random.choice([("VARCHAR", "string", [f"r{city % 12 % 4}" for city in cities]), ("INTEGER", "small", [city % 12 % 4 for city in cities])]))
    most = random.choice([3, 100, 10_000])
    add("num", random.choice(["SMALLINT", "INTEGER", "BIGINT"]), "small", [random.randint(-most, most) for _ in range(rows)])
    add_some(random, add, rows)
    write(table, arrays, directory, statements, primary=random.random() < 0.3 and unique and not null_keys)
    return table


def make_fact(random, dimensions, directory, statements):
    rows = random.choice(FACTS) if random.random() > 0.07 else LARGE_FACT
    repeated = any(table.repeated for dimension in dimensions for table in lineage(dimension))
    if repeated:
        rows = min(rows, MOST_FACTS_REPEATED)
    drawn = min(rows, 40_000)
    table = Table("f", [], rows)
    arrays = []

    def add(suffix, sql, kind, values, nulls=True):
        rate = random.choice(NULL_RATES) if nulls else 0.0
        values = [None if random.random() < rate else value for value in values] if rate else values
        table.columns.append(column_of(random, f"f_{suffix}", sql, kind, values))
        arrays.append(pa.array(values, arrow(sql)))
        return table.columns[-1]

    add("id", "BIGINT", "integer", list(range(drawn)), nulls=False)
    table.key = table.columns[0]
    number = 0
    for dimension in dimensions:
        # A dimension may be there in two roles.
        roles = random.choice([1, 1, 1, 2])
        for _ in range(1 if any(table.repeated for table in lineage(dimension)) else roles):
            refer(random, table, dimension, f"k{number}", drawn, add)
            number += 1
    add("num", random.choice(["TINYINT", "SMALLINT", "INTEGER"]), "small", [random.randint(-100, 100) for _ in range(drawn)])
    add("qty", "INTEGER", "small", [random.randint(1, 50) for _ in range(drawn)], nulls=False)
    add("color", "VARCHAR", "string", [random.choice(COLORS) for _ in range(drawn)])
    add_some(random, add, drawn)
    if rows > drawn:
        # As many again and again, in an order of their own.
        places = pa.array(random.choices(range(drawn), k=rows))
        arrays = [pa.array(range(rows), pa.int64())] + [array.take(places) for array in arrays[1:]]
    write(table, arrays, directory, statements, primary=random.random() < 0.15)
    return table


def lineage(table):
    """The table and all that it refers to."""
    return [table] + [each for _, above in table.references for each in lineage(above)]


def add_some(random, add, rows):
    """Attributes that any table may have."""
    span = random.choice([5, 400, 20_000])
    day = datetime.date(1990, 1, 1)
    texts = random.choice([3, 1_000_000])
    length = random.choice([1, 60])
    choices = {
        "flo": ("DOUBLE", "double", lambda: random.randint(-(2**20), 2**20) / 1024 + 0.0),
        "dec": ("DECIMAL(12,2)", "decimal", lambda: Decimal(random.randint(-(10**6), 10**6)).scaleb(-2)),
        "txt": ("VARCHAR", "string", lambda: f"text {random.randrange(texts)} " * random.randint(1, length)),
        "day": ("DATE", "day", lambda: day + datetime.timedelta(days=random.randrange(span))),
        "flag": ("BOOLEAN", "flag", lambda: random.random() < 0.4),
    }
    for suffix in random.sample(sorted(choices), random.choice([1, 2, 3, 5])):
        sql, kind, draw = choices[suffix]
        add(suffix, sql, kind, [draw() for _ in range(rows)])


def refer(random, table, other, suffix, rows, add):
    """A column with keys of another table: skewed, in runs or at random, some of them missing there."""
    sql, kind = other.key.sql, other.key.kind
    if sql in INTEGERS:
        low, high = min(other.values, default=0), max(other.values, default=0)
        # The next one is what a dangling key may be.
        sql = random.choice([name for name, (_, least, most) in INTEGERS.items() if least <= low and high < most])
    keys = other.values or [absent(random, kind, [], sql)]
    skew = random.choice([1, 1, 3, 8])
    # A chunk with one of them is not stored in another order.
    dangling = random.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.6])
    values = [
        absent(random, kind, keys, sql) if random.random() < dangling else keys[int(len(keys) * random.random() ** skew)]
        for _ in range(rows)
    ]
    if random.random() < 0.25:
        values.sort()
    column = add(suffix, sql, kind, values)
    table.references.append((column, other))


def draw_keys(random, rows):
    """Type, kind and distinct values of a key, in an order that may be any."""
    form = random.choice(["dense", "dense", "gaps", "gaps", "gaps", "far", "negative", "date", "ymd", "ymd", "timestamp", "decimal", "string", "wide"])
    day, number = datetime.date(1992, 1, 1), random.choice([1, 7])
    if form == "dense":
        first, kind = random.choice([0, 1, 1_000]), "integer"
        keys = [first + i for i in range(rows)]
    elif form == "gaps":
        kind, keys = "integer", sorted(random.sample(range(rows * 20 + 1), rows))
    elif form == "far":
        kind, keys = "integer", [i * 10**12 + 17 for i in range(rows)]
    elif form == "wide":
        kind, keys = "integer", sorted({random.randint(-(2**62), 2**62) for _ in range(rows)})
    elif form == "negative":
        kind, keys = "integer", [(i - rows // 2) * number for i in range(rows)]
    elif form == "date":
        kind, keys = "day", [day + datetime.timedelta(days=i * number) for i in range(rows)]
    elif form == "ymd":
        kind = "integer"
        days = [day + datetime.timedelta(days=i) for i in range(rows)]
        keys = [each.year * 10_000 + each.month * 100 + each.day for each in days]
    elif form == "timestamp":
        start = datetime.datetime(1992, 1, 1)
        kind, keys = "timestamp", [start + datetime.timedelta(seconds=i * 3_601, microseconds=i) for i in range(rows)]
    elif form == "decimal":
        kind, keys = "decimal", [Decimal(i * 125 - 500).scaleb(-2) for i in range(rows)]
    else:
        kind, keys = "string", [random.choice(["k", "key number ", "schlüssel"]) + str(i * 37) for i in range(rows)]
    if random.random() < 0.6:
        random.shuffle(keys)
    others = {"day": "DATE", "timestamp": "TIMESTAMP", "decimal": "DECIMAL(15,2)", "string": "VARCHAR"}
    if kind in others:
        return others[kind], kind, keys
    low, high = min(keys, default=0), max(keys, default=0)
    fit = [name for name, (_, least, most) in INTEGERS.items() if least <= low and high + 1_000 <= most]
    return random.choice(fit), kind, keys


def absent(random, kind, keys, sql):
    """A value that is hardly ever a key."""
    if kind == "integer":
        low, high = min(keys, default=0), max(keys, default=0)
        return min(max(random.randint(low - 1, high + 1), INTEGERS[sql][1]), INTEGERS[sql][2])
    if kind == "day":
        return datetime.date(1991, 1, 1) + datetime.timedelta(days=random.randrange(9_000))
    if kind == "timestamp":
        return datetime.datetime(1992, 1, 1) + datetime.timedelta(seconds=random.randrange(10**7))
    if kind == "decimal":
        return Decimal(random.randint(-1_000, 40_000)).scaleb(-2)
    return f"none {random.randrange(50)}"


def column_of(random, name, sql, kind, values):
    present = sorted({value for value in values if value is not None})
    return Column(name, sql, kind, random.sample(present, min(len(present), 30)))


def write(table, arrays, directory, statements, primary):
    """The file of a table, and the statements that make the table of it."""
    path = f"{directory}/{table.name}.parquet"
    names = [column.name for column in table.columns]
    pq.write_table(pa.Table.from_arrays(arrays, names), path)
    constraint = f", PRIMARY KEY ({table.key.name})" if primary else ""
    columns = ", ".join(f"{column.name} {column.sql}" for column in table.columns)
    statements.append(f"CREATE TABLE {table.name} ({columns}{constraint})")
    statements.append(f"INSERT INTO {table.name} SELECT * FROM '{path}'")
