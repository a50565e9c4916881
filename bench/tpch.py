#!/usr/bin/env python3
"""The 22 queries of TPC-H in eris and its peers: same files, same texts, in turns, with constants that each round draws anew.

    tpch.py --scale 1
    tpch.py --scale 1 --peers duckdb,hyper,datafusion --rounds 9
    tpch.py --scale 1 --eris OLD,NEW --query 9 --fixed

The tables are made by tpchgen-cli (PyPI) and kept. The texts are in bench/tpch; what stands in braces there is drawn as the
standard says (TPC-H 3.0, section 2.4), unless `--fixed` asks for the values with which it validates. Polars and ClickHouse are
not among the peers: their SQL lacks correlated subqueries that the texts have.
"""

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/oracle"))

from common import tpch  # noqa: E402
from common.process import find_binary  # noqa: E402
from peers import beside  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="1", help="scale factor: 1 is six million line items [%(default)s]")
    parser.add_argument("--data", type=Path, required=True, help="directory with a folder of files per scale; made if missing")
    parser.add_argument("--seed", type=int, default=1, help="of the constants [%(default)s]")
    parser.add_argument("--fixed", action="store_true", help="the constants that the standard validates with, in each round")
    beside.add_arguments(parser)
    options = parser.parse_args()
    files = tpch.generated(options.data / f"tpch-{options.scale}", options.scale)

    def texts(number):
        values = tpch.FIXED if options.fixed else tpch.drawn(random.Random(f"{options.seed} {number}"))
        return tpch.texts(values, options.scale)

    binaries = [find_binary(one) for one in (options.eris or "").split(",")]
    return 1 if beside.run(options, binaries, files, texts) else 0


if __name__ == "__main__":
    sys.exit(main())
