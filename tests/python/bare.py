#!/usr/bin/env python3
"""What the module does where nothing but its wheel is installed: all that needs no library of arrays or frames."""

import sys
import time
from pathlib import Path

begun = time.perf_counter()
import eris_db  # noqa: E402 - how long it takes is told

SECONDS = time.perf_counter() - begun
LIBRARIES = ["numpy", "pandas", "polars", "pyarrow"]
# Of a wheel that is published.
MOST_BYTES = 40_000_000


def main():
    with eris_db.connect(memory="512MB", aeus=2) as connection:
        connection.execute("CREATE TABLE stock (item VARCHAR PRIMARY KEY, pieces BIGINT)")
        connection.executemany("INSERT INTO stock VALUES (?, ?)", [("nail", 500), ("saw", 7)])
        assert connection.append("stock", {"item": ["file", "axe"], "pieces": [40, None]}).rowcount == 2
        found = connection.execute("SELECT item FROM stock WHERE pieces = ANY(?)", [[7, 8]]).fetchall()
        assert found == [("saw",)]
        sold = {"item": ["nail", "saw"], "sold": [20, None]}  # noqa: F841 - the statement reads it
        found = connection.execute("SELECT pieces - sold FROM stock JOIN sold USING (item) ORDER BY item").fetchall()
        assert found == [(480,), (None,)]
        rows = connection.rows("stock")
        assert rows.put({"item": ["bolt", "saw"], "pieces": [90, 6]}) == 1
        found, of = rows.get(["saw", "screw", "bolt"], ["pieces"])
        assert (found.fetchall(), list(of)) == ([(6,), (90,)], [0, 2])
        assert rows.remove(["axe", "screw"]) == 1
        assert "│ nail │" in repr(connection.execute("SELECT item FROM stock WHERE pieces = 500"))
        for method in ("numpy", "df", "pl", "arrow", "reader"):
            try:
                getattr(connection.execute("SELECT 1"), method)()
            except ImportError:
                continue
            raise AssertionError(f"{method}() needs a library that is not there")
    imported = [name for name in LIBRARIES if name in sys.modules]
    assert not imported, imported
    wheels = list((Path(__file__).resolve().parents[2] / "dist").glob("eris_db-*.whl"))
    sizes = [wheel.stat().st_size for wheel in wheels]
    assert all(size <= MOST_BYTES for size in sizes), sizes
    print(f"the module needs no other package; import takes {SECONDS * 1000:.0f} ms, wheels have {sizes} bytes")


if __name__ == "__main__":
    main()
