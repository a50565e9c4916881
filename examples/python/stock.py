"""A stock-keeping in a few lines: frames in, queries, frames out, rows by key.

python stock.py          # needs eris-db, numpy and polars
"""

import asyncio

import eris_db
import numpy
import polars


def load(connection: eris_db.Connection) -> None:
    """Two tables: one of a frame, one with a key."""
    sales = polars.DataFrame(
        {
            "item": ["nail", "saw", "nail", "screw"],
            "sold": [20, 1, 80, 5],
            "day": numpy.arange("2024-03-01", "2024-03-05", dtype="datetime64[D]"),
        }
    )
    connection.register("sales", sales)
    connection.execute("CREATE TABLE sold AS SELECT * FROM sales")
    connection.unregister("sales")
    connection.execute("CREATE TABLE stock (item VARCHAR PRIMARY KEY, pieces BIGINT NOT NULL)")
    connection.executemany("INSERT INTO stock VALUES (?, ?)", [("nail", 500), ("saw", 7)])


def left(connection: eris_db.Connection) -> polars.DataFrame:
    """What is left of each item."""
    return connection.execute(
        """
        SELECT item, pieces - coalesce(sum(sold), 0) AS pieces
        FROM stock LEFT JOIN sold USING (item) GROUP BY item, pieces ORDER BY item
        """
    ).pl()


def restock(connection: eris_db.Connection, items: list[str], pieces: int) -> dict[str, int]:
    """Puts rows in by their keys; returns all that has these keys then."""
    rows = connection.rows("stock")
    replaced = rows.put({"item": items, "pieces": numpy.full(len(items), pieces)})
    found, of = rows.get(items, ["pieces"])
    print(f"{replaced} of {len(of)} were there before")
    return {items[position]: row[0] for position, row in zip(of, found, strict=True)}


async def counts(database: eris_db.Database) -> list[int]:
    """Two statements side by side."""
    with database.connect() as one, database.connect() as other:
        results = await asyncio.gather(
            one.aexecute("SELECT count(*) FROM sold"),
            other.aexecute("SELECT count(*) FROM stock WHERE pieces > $least", {"least": 100}),
        )
        return [row[0] for result in results for row in result]


def twice(database: eris_db.Database) -> int:
    """A bare index of numbers."""
    index = eris_db.KeyIndex(database, 0, 999)
    keys = numpy.arange(1000, dtype=numpy.uint64)
    index.put(keys, keys * 2)
    wanted = numpy.array([21, 5000], dtype=numpy.uint64)
    return int(index.get(wanted, default=0).sum())


def main() -> None:
    with eris_db.Database(memory="1GB", aeus=2) as database, database.connect() as connection:
        load(connection)
        print(left(connection))
        print(restock(connection, ["saw", "bolt"], 40))
        print(asyncio.run(counts(database)), twice(database))
        try:
            connection.execute("INSERT INTO stock VALUES ('saw', 1)")
        except eris_db.IntegrityError as error:
            print(error.sqlstate, error)


if __name__ == "__main__":
    main()
