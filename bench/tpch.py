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
import datetime
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common.process import find_binary  # noqa: E402
from peers import beside  # noqa: E402

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
QUERIES = {path.stem[1:].lstrip("0"): path.read_text().strip() for path in sorted((ROOT / "bench/tpch").glob("q*.sql"))}

REGIONS = {
    "AFRICA": ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    "AMERICA": ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    "ASIA": ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    "EUROPE": ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    "MIDDLE EAST": ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
}
NATIONS = [nation for nations in REGIONS.values() for nation in nations]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
SIZES_OF_TYPES = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"]
COATINGS = ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"]
METALS = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]
CONTAINERS = ["SM", "LG", "MED", "JUMBO", "WRAP"]
CONTAINER_KINDS = ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
COLOURS = "almond antique azure blush chiffon cornsilk forest frosted green ivory lavender lime midnight olive peru".split()

# What the standard validates with.
FIXED = {
    "1": {"day": "1998-09-02"},
    "2": {"size": 15, "metal": "BRASS", "region": "EUROPE"},
    "3": {"segment": "BUILDING", "day": "1995-03-15"},
    "4": {"first": "1993-07-01", "end": "1993-10-01"},
    "5": {"region": "ASIA", "first": "1994-01-01", "end": "1995-01-01"},
    "6": {"first": "1994-01-01", "end": "1995-01-01", "low": "0.05", "high": "0.07", "quantity": 24},
    "7": {"one": "FRANCE", "other": "GERMANY"},
    "8": {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    "9": {"colour": "green"},
    "10": {"first": "1993-10-01", "end": "1994-01-01"},
    "11": {"nation": "GERMANY"},
    "12": {"one": "MAIL", "other": "SHIP", "first": "1994-01-01", "end": "1995-01-01"},
    "13": {"one": "special", "other": "requests"},
    "14": {"first": "1995-09-01", "end": "1995-10-01"},
    "15": {"first": "1996-01-01", "end": "1996-04-01"},
    "16": {"brand": "Brand#45", "type": "MEDIUM POLISHED", "sizes": "49, 14, 23, 45, 19, 3, 36, 9"},
    "17": {"brand": "Brand#23", "container": "MED BOX"},
    "18": {"quantity": 300},
    "19": {"brand1": "Brand#12", "brand2": "Brand#23", "brand3": "Brand#34", "q1": 1, "q2": 10, "q3": 20},
    "20": {"colour": "forest", "first": "1994-01-01", "end": "1995-01-01", "nation": "CANADA"},
    "21": {"nation": "SAUDI ARABIA"},
    "22": {"codes": "'13', '31', '23', '29', '30', '18', '17'"},
}


def drawn(random):
    """Values for each query, as section 2.4 says."""

    def month(first_year, last_year, months, last_month=12):
        """The first day of a month from January of a year to a month of another one, and the day so many months later."""
        last = (last_year - first_year) * 12 + last_month - 1
        number = random.randint(0, last)
        day = lambda number: f"{first_year + number // 12}-{number % 12 + 1:02}-01"  # noqa: E731
        return {"first": day(number), "end": day(number + months)}

    def year():
        number = random.randint(1993, 1997)
        return {"first": f"{number}-01-01", "end": f"{number + 1}-01-01"}

    pick, number = random.choice, random.randint
    brand = lambda: f"Brand#{number(1, 5)}{number(1, 5)}"  # noqa: E731
    region = pick(list(REGIONS))
    nation = pick(REGIONS[region])
    pair = random.sample(NATIONS, 2)
    discount = number(2, 9)
    modes = random.sample(MODES, 2)
    shipped = datetime.date(1998, 12, 1) - datetime.timedelta(days=number(60, 120))
    kind = [pick(SIZES_OF_TYPES), pick(COATINGS), pick(METALS)]
    return {
        "1": {"day": shipped.isoformat()},
        "2": {"size": number(1, 50), "metal": pick(METALS), "region": pick(list(REGIONS))},
        "3": {"segment": pick(SEGMENTS), "day": f"1995-03-{number(1, 31):02}"},
        "4": month(1993, 1997, 3, 10),
        "5": {"region": pick(list(REGIONS))} | year(),
        "6": year() | {"low": f"0.{discount - 1:02}", "high": f"0.{discount + 1:02}", "quantity": number(24, 25)},
        "7": {"one": pair[0], "other": pair[1]},
        "8": {"nation": nation, "region": region, "type": " ".join(kind)},
        "9": {"colour": pick(COLOURS)},
        "10": month(1993, 1995, 3, 1),
        "11": {"nation": pick(NATIONS)},
        "12": {"one": modes[0], "other": modes[1]} | year(),
        "13": {
            "one": pick(["special", "pending", "unusual", "express"]),
            "other": pick(["packages", "requests", "accounts", "deposits"]),
        },
        "14": month(1993, 1997, 1),
        "15": month(1993, 1997, 3, 10),
        "16": {
            "brand": brand(),
            "type": f"{pick(SIZES_OF_TYPES)} {pick(COATINGS)}",
            "sizes": ", ".join(map(str, random.sample(range(1, 51), 8))),
        },
        "17": {"brand": brand(), "container": f"{pick(CONTAINERS)} {pick(CONTAINER_KINDS)}"},
        "18": {"quantity": number(312, 315)},
        "19": {"brand1": brand(), "brand2": brand(), "brand3": brand()}
        | {"q1": number(1, 10), "q2": number(10, 20), "q3": number(20, 30)},
        "20": {"colour": pick(COLOURS), "nation": pick(NATIONS)} | year(),
        "21": {"nation": pick(NATIONS)},
        "22": {"codes": ", ".join(f"'{code}'" for code in random.sample(range(10, 35), 7))},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="1", help="scale factor: 1 is six million line items [%(default)s]")
    parser.add_argument("--data", type=Path, required=True, help="directory with a folder of files per scale; made if missing")
    parser.add_argument("--seed", type=int, default=1, help="of the constants [%(default)s]")
    parser.add_argument("--fixed", action="store_true", help="the constants that the standard validates with, in each round")
    beside.add_arguments(parser)
    options = parser.parse_args()
    files = generated(options.data / f"tpch-{options.scale}", options.scale)
    fraction = {"fraction": f"{0.0001 / float(options.scale):.10f}"}

    def texts(number):
        values = FIXED if options.fixed else drawn(random.Random(f"{options.seed} {number}"))
        return {name: sql.format_map(values[name] | fraction) for name, sql in QUERIES.items()}

    binaries = [find_binary(one) for one in (options.eris or "").split(",")]
    return 1 if beside.run(options, binaries, files, texts) else 0


def generated(directory, scale):
    """The tables' files; made by tpchgen-cli if they are not there."""
    files = {table: directory / f"{table}.parquet" for table in TABLES}
    if not all(path.is_file() for path in files.values()):
        directory.mkdir(parents=True, exist_ok=True)
        program = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([program, "parquet", "-s", scale, "--output-dir", directory], check=True)
    return {table: str(path.resolve()) for table, path in files.items()}


if __name__ == "__main__":
    sys.exit(main())
