#!/usr/bin/env python3
"""Queries of many shapes over generated tables, in eris and its peers: one line for each shape, so that none hides in a mean.

    shapes.py --data DIR
    shapes.py --data DIR --rows 1000000 --query topn_v --query left
    shapes.py --data DIR --eris OLD,NEW

    f     10 million rows: keys from 10 to a million values, numbers, 5,000 and 100,000 strings, 2,500 days, a skewed key
    d1m   a row for each of a million keys
    g5m   5 million rows whose key has as many values as f has rows, half of them among these
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common.process import find_binary  # noqa: E402
from peers import beside  # noqa: E402

# Made by DuckDB, whose hash is the same everywhere; `{rows}` and parts of it.
TABLES = {
    "f": """
        SELECT i AS id, CAST(hash(i) % ({rows} // 10) AS BIGINT) AS k1m, CAST(hash(i * 7 + 1) % 1000 AS INTEGER) AS k1k,
            CAST(hash(i * 3 + 5) % 10 AS INTEGER) AS k10, CAST(hash(i * 11) % 1000000000 AS BIGINT) AS v,
            (hash(i * 13) % 100000) / 100.0::DOUBLE AS d, 'customer#' || (hash(i * 17) % 5000) AS s5k,
            'http://site' || (hash(i * 19) % 100000) || '.example.com/page/' || (hash(i * 23) % 10) AS url,
            DATE '1992-01-01' + CAST(hash(i * 29) % 2500 AS INTEGER) AS dt,
            CAST(floor(1000 * pow((hash(i * 37) % 1000000) / 1000000.0, 6)) AS INTEGER) AS skew
        FROM range({rows}) t(i)""",
    "d1m": """
        SELECT i AS k1m, CAST(hash(i * 31) % 100 AS INTEGER) AS attr, 'name' || i AS name FROM range({rows} // 10) t(i)""",
    "g5m": "SELECT CAST(hash(i) % ({rows} // 2) AS BIGINT) * 2 AS k, i AS w FROM range({rows} // 2) t(i)",
}

QUERIES = {
    "topn_v": "SELECT id, v FROM f ORDER BY v DESC, id LIMIT 10",
    "topn_d": "SELECT id, d FROM f ORDER BY d, id LIMIT 10",
    "topn_s": "SELECT id, s5k FROM f ORDER BY s5k, id LIMIT 10",
    "topn_dt": "SELECT id, dt, v FROM f WHERE k10 = 3 ORDER BY dt DESC, v, id LIMIT 100",
    "rownum2": """SELECT count(*), sum(v)
        FROM (SELECT k1k, v, row_number() OVER (PARTITION BY k1k ORDER BY v DESC, id) AS r FROM f) AS t WHERE r <= 2""",
    "rownum1m": """SELECT count(*), sum(v)
        FROM (SELECT k1m, v, row_number() OVER (PARTITION BY k1m ORDER BY v DESC, id) AS r FROM f) AS t WHERE r = 1""",
    "cumsum": "SELECT max(s) FROM (SELECT sum(v) OVER (PARTITION BY k1k ORDER BY id) AS s FROM f) AS t",
    "lag": "SELECT sum(v - l) FROM (SELECT v, lag(v) OVER (PARTITION BY k1k ORDER BY id) AS l FROM f) AS t",
    "cntd": "SELECT count(DISTINCT k1m), count(DISTINCT k1k) FROM f",
    "cntd_g": "SELECT k10, count(DISTINCT k1m) FROM f GROUP BY k10 ORDER BY k10",
    "median": "SELECT k10, median(v) FROM f GROUP BY k10 ORDER BY k10",
    "quant": "SELECT k1k, quantile_cont(d, 0.9) AS q FROM f GROUP BY k1k ORDER BY k1k LIMIT 5",
    "rollup": """SELECT k10, k1k, count(*), sum(v) FROM f GROUP BY ROLLUP (k10, k1k)
        ORDER BY k10 NULLS LAST, k1k NULLS LAST LIMIT 5""",
    "cube": "SELECT k10, dt, count(*), sum(v) AS s FROM f GROUP BY CUBE (k10, dt) ORDER BY s DESC LIMIT 5",
    "grp1m": "SELECT k1m, count(*), sum(v) AS s FROM f GROUP BY k1m ORDER BY s DESC, k1m LIMIT 5",
    "grp_skew": "SELECT skew, count(*), sum(v) AS s FROM f GROUP BY skew ORDER BY s DESC, skew LIMIT 5",
    "grp_url": "SELECT url, count(*) AS c FROM f GROUP BY url ORDER BY c DESC, url LIMIT 5",
    "grp_many": """SELECT k10, k1k, s5k, dt, count(*) AS c FROM f WHERE id < 3000000 GROUP BY k10, k1k, s5k, dt
        ORDER BY c DESC, k10, k1k, s5k, dt LIMIT 5""",
    "regexp": r"""SELECT regexp_replace(url, '^http://([^/]*)/.*$', '\1') AS h, count(*) AS c FROM f GROUP BY h
        ORDER BY c DESC, h LIMIT 5""",
    "length": "SELECT sum(length(s5k)), sum(length(url)) FROM f",
    "like": "SELECT count(*) FROM f WHERE url LIKE '%9.example.com%3'",
    "upper": "SELECT upper(s5k) AS u, count(*) AS c FROM f GROUP BY u ORDER BY c DESC, u LIMIT 5",
    "case": """SELECT CASE WHEN s5k LIKE '%1' THEN 'a' WHEN s5k LIKE '%2' THEN 'b' ELSE 'c' END AS x, count(*), sum(v)
        FROM f GROUP BY x ORDER BY x""",
    "datetrunc": "SELECT date_trunc('month', dt) AS m, count(*), sum(v) FROM f GROUP BY m ORDER BY m LIMIT 5",
    "year": "SELECT extract(year FROM dt) AS y, k10, sum(v) FROM f GROUP BY y, k10 ORDER BY y, k10 LIMIT 5",
    "join1m": "SELECT attr, count(*), sum(v) FROM f JOIN d1m USING (k1m) GROUP BY attr ORDER BY attr LIMIT 5",
    "join1m_name": "SELECT count(*), max(name), sum(v) FROM f JOIN d1m USING (k1m) WHERE attr < 50",
    "left": "SELECT count(*), count(w), sum(w) FROM f LEFT JOIN g5m ON f.id = g5m.k",
    "leftgrp": """SELECT n, count(*)
        FROM (SELECT d1m.k1m, count(f.id) AS n FROM d1m LEFT JOIN f ON d1m.k1m = f.k1m AND f.k10 < 5 GROUP BY d1m.k1m) AS t
        GROUP BY n ORDER BY n LIMIT 5""",
    "semi": "SELECT count(*), sum(v) FROM f WHERE id IN (SELECT k FROM g5m)",
    "anti": "SELECT count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT 1 FROM g5m WHERE g5m.k = f.id)",
    "big": "SELECT count(*), sum(v + w) FROM f JOIN g5m ON f.id = g5m.k",
    "self": "SELECT count(*), sum(a.v - b.v) FROM f AS a JOIN f AS b ON a.id = b.k1m * 10 AND a.k10 = b.k10",
    "full": """SELECT count(*), count(f.id), count(g5m.k) FROM f FULL JOIN g5m ON f.id = g5m.k
        WHERE f.k10 IS NULL OR f.k10 < 20""",
    "union": "SELECT count(*) FROM (SELECT k1m FROM f UNION SELECT k FROM g5m) AS t",
    "except": "SELECT count(*) FROM (SELECT k1m FROM f EXCEPT SELECT k FROM g5m) AS t",
    "sortall": "SELECT sum(r * v) FROM (SELECT v, row_number() OVER (ORDER BY v, id) % 7 AS r FROM f) AS t",
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT k1k, dt FROM f) AS t",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory for the generated tables; made if missing")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the largest table [%(default)s]")
    beside.add_arguments(parser)
    options = parser.parse_args()
    unknown = [name for name in options.query or [] if name not in QUERIES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(QUERIES)}")
    files = generated(options.data / f"shapes-{options.rows}", options.rows)
    binaries = [find_binary(one) for one in (options.eris or "").split(",")]
    return 1 if beside.run(options, binaries, files, lambda _: QUERIES) else 0


def generated(directory, rows):
    """The tables' files; made by DuckDB if they are not there."""
    import duckdb

    directory.mkdir(parents=True, exist_ok=True)
    files = {table: directory / f"{table}.parquet" for table in TABLES}
    for table, path in files.items():
        if not path.is_file():
            half = path.with_suffix(".half")
            duckdb.sql(f"COPY ({TABLES[table].format(rows=rows)}) TO '{half}' (FORMAT parquet)")
            half.rename(path)
    return {table: str(path.resolve()) for table, path in files.items()}


if __name__ == "__main__":
    sys.exit(main())
