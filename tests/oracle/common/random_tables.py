"""Random tables as Parquet files: every type, several shapes of data, several row counts.

Columns (each table has all of them, prefixed by the table's name, so that no join is ambiguous):

    id                unique, 0 to n-1, shuffled        txt_low, txt_high   few and many different strings
    i8 i16 i32 i64    signed                            dbl, real           binary fractions: sums are exact
    u8 u16 u32        unsigned                          dec, wide_dec       DECIMAL(12,2), DECIMAL(30,4)
    wide, uwide       the whole range of 64 bits        day, timestamp      DATE, TIMESTAMP (microseconds)
    fk                0 to about n/2: joins             flag                BOOLEAN
    time, uuid        TIME, UUID                        blob                BLOB, often no text

A column's values follow a shape that an encoding might like or hate (constant, runs, sorted, few, many) and carry nulls
at a rate from none to all.

Left out, because the engines differ and neither is wrong: NaN, infinities and negative zero (ordering), backslashes in
strings (escape in LIKE), dates before 1970 or beyond 2100.
"""

import datetime
import uuid
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = ["", "a", "A", "ab", "abc", "Zürich", "東京", "x y", "100%", "under_score", "o'clock", "zz"]
SYLLABLES = ["ka", "ro", "mi", "Te", "so", "nü", "la", "vi"]
EPOCH = datetime.datetime(1970, 1, 1)
NULL_RATES = [0.0, 0.0, 0.02, 0.3, 0.9]
SHAPES = ["constant", "runs", "sorted", "few", "many", "many"]

INTEGERS = {
    "i8": (-128, 127),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**40), 2**40),
    "u8": (0, 255),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "wide": (-(2**63), 2**63 - 1),
    "uwide": (0, 2**64 - 1),
}
ARROW = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "wide": pa.int64(),
    "uwide": pa.uint64(),
}


@dataclass
class Column:
    """What the query generator knows of a column."""

    name: str
    kind: str  # integer, double, decimal, string, day, timestamp, flag, time, uuid, blob
    bound: int = 0  # integers: the largest magnitude
    scale: int = 0  # decimals
    domain: list = field(default_factory=list)  # some values that occur
    distinct: int = 1
    countable: bool = True  # integers: small enough to calculate with


@dataclass
class Table:
    name: str
    rows: int
    path: str
    columns: list


def make_table(random, name, rows, directory):
    """A table with random content, written to `directory`."""
    columns, arrays, fields = [], [], []

    def add(suffix, arrow, values, kind, **facts):
        null_rate = 0.0 if suffix == "id" else random.choice(NULL_RATES)
        if suffix != "id" and random.random() < 0.02:
            null_rate = 1.0
        if null_rate:
            values = [None if random.random() < null_rate else value for value in values]
        present = {value for value in values if value is not None}
        column = Column(f"{name}_{suffix}", kind, distinct=max(1, len(present)), **facts)
        column.domain = random.sample(sorted(present), min(len(present), 20))
        columns.append(column)
        arrays.append(array_of(values, arrow))
        fields.append(pa.field(column.name, arrow))

    ids = list(range(rows))
    if random.random() < 0.7:
        random.shuffle(ids)
    add("id", pa.int64(), ids, "integer", bound=max(rows, 1))
    keys = max(1, rows // 2)
    add("fk", pa.int32(), shaped(random, rows, lambda: random.randrange(keys)), "integer", bound=keys)
    for suffix, (low, high) in INTEGERS.items():
        countable = suffix not in ("wide", "uwide")
        # A narrow window of a wide type is what bit-packing is for.
        width = random.choice([3, 200, 70_000, high - low])
        base = random.randint(low, max(low, high - width))
        top = min(high, base + width)
        values = shaped(random, rows, lambda: random.randint(base, top))
        bound = max(abs(low), abs(high))
        add(suffix, ARROW[suffix], values, "integer", bound=bound, countable=countable)
    add("txt_low", pa.string(), shaped(random, rows, lambda: random.choice(WORDS)), "string")
    add("txt_high", pa.string(), shaped(random, rows, lambda: name_of(random)), "string")
    quarters = lambda: random.randint(-4_000, 4_000) / 4 + 0.0
    add("dbl", pa.float64(), shaped(random, rows, lambda: random.randint(-(2**30), 2**30) / 1024 + 0.0), "double")
    add("real", pa.float32(), shaped(random, rows, quarters), "double")
    cents = lambda: Decimal(random.randint(-(10**9), 10**9)).scaleb(-2)
    add("dec", pa.decimal128(12, 2), shaped(random, rows, cents), "decimal", scale=2)
    many = lambda: Decimal(random.randint(-(10**20), 10**20)).scaleb(-4)
    add("wide_dec", pa.decimal128(30, 4), shaped(random, rows, many), "decimal", scale=4)
    day = lambda: datetime.date(1970, 1, 1) + datetime.timedelta(days=random.randrange(random_span))
    random_span = random.choice([3, 400, 47_000])
    add("day", pa.date32(), shaped(random, rows, day), "day")
    timestamp = lambda: EPOCH + datetime.timedelta(microseconds=random.randrange(2**random_bits))
    random_bits = random.choice([10, 36, 51])
    add("timestamp", pa.timestamp("us"), shaped(random, rows, timestamp), "timestamp")
    add("flag", pa.bool_(), shaped(random, rows, lambda: random.random() < 0.3), "flag")
    second = random.choice([1, 60, 86_400])
    clock = lambda: (EPOCH + datetime.timedelta(seconds=random.randrange(second), microseconds=random.choice([0, 1, 500_000]))).time()
    add("time", pa.time64("us"), shaped(random, rows, clock), "time")
    identifiers = lambda: uuid.UUID(int=random.choice([random.getrandbits(128), random.randrange(20)]))
    add("uuid", pa.uuid(), shaped(random, rows, identifiers), "uuid")
    blob = lambda: random.choice([random.randbytes(random.randint(0, 20)), b"\xff" * random.randint(0, 3), b"plain text " * 2])
    add("blob", pa.binary(), shaped(random, rows, blob), "blob")

    path = f"{directory}/{name}.parquet"
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=pa.schema(fields)),
        path,
        row_group_size=random.choice([1_000, 65_536, 1_000_000]),
        use_dictionary=random.random() < 0.7,
    )
    return Table(name, rows, path, columns)


def array_of(values, arrow):
    """The values as an array; pyarrow takes the bytes of UUIDs."""
    if arrow == pa.uuid():
        stored = pa.array([value and value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(arrow, stored)
    return pa.array(values, arrow)


def make_rewritten(random, tables, directory):
    """A table that was emptied, altered and filled again by small statements: the table and the statements."""
    table = make_table(random, "d", random.choice([0, 1, 100, 3_000, 70_000]), directory)
    source = f"'{table.path}'"
    parts = random.choice([1, 2, 7])
    statements = [
        f"CREATE TABLE d AS SELECT * FROM {source}",
        "TRUNCATE d",
        "ALTER TABLE d ADD COLUMN d_extra INTEGER DEFAULT 7",
    ]
    for part in range(parts):
        names = ", ".join(column.name for column in table.columns)
        chosen = f"FROM {source} WHERE d_id % {parts} = {part}"
        statements.append(f"INSERT INTO d ({names}) SELECT {names} {chosen}")
    if random.random() < 0.5:
        statements.append("ALTER TABLE d DROP COLUMN d_extra")
    else:
        column = Column("d_more", "integer", bound=7, domain=[7] if table.rows else [])
        statements.append("ALTER TABLE d RENAME COLUMN d_extra TO d_more")
        table.columns.append(column)
    return table, statements


def make_view(random, tables, _):
    """A view of a part of a table, with other names."""
    table = random.choice(tables)
    columns = [replace(column, name=f"e_{column.name}") for column in table.columns]
    items = ", ".join(f"{old.name} AS {new.name}" for old, new in zip(table.columns, columns))
    condition = random.choice(["", f" WHERE {table.columns[0].name} % 3 <> 1"])
    statement = f"CREATE VIEW e AS SELECT {items} FROM {table.name}{condition}"
    return Table("e", table.rows, table.path, columns), [statement]


def shaped(random, rows, draw):
    """`rows` values from `draw`, in one of the shapes."""
    shape = random.choice(SHAPES)
    if shape == "constant":
        return [draw()] * rows
    if shape == "few":
        pool = [draw() for _ in range(random.randint(1, 12))]
        return [random.choice(pool) for _ in range(rows)]
    if shape == "runs":
        values = []
        while len(values) < rows:
            values += [draw()] * random.choice([1, 5, 1_000, 70_000])
        return values[:rows]
    values = [draw() for _ in range(rows)]
    return sorted(values) if shape == "sorted" else values


def name_of(random):
    return "".join(random.choice(SYLLABLES) for _ in range(random.randint(1, 5))) + str(random.randrange(1_000))
