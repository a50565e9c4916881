"""The tables, query texts and constants of TPC-H (3.0, section 2.4). The texts are in bench/tpch; what stands in braces there is
drawn as the standard says, or has the values with which it validates."""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
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

def texts(values, scale):
    """The 22 queries with these constants, by their numbers."""
    # Section 2.4.11.3.
    fraction = {"fraction": f"{0.0001 / float(scale):.10f}"}
    return {name: sql.format_map(values[name] | fraction) for name, sql in QUERIES.items()}


def in_other_order(sql, random):
    """The same query with the tables of each FROM in an order that is drawn; `None` if each has only one."""
    changed = False

    def shuffled(clause):
        nonlocal changed
        tables = [table.strip() for table in clause.group(1).split(",")]
        random.shuffle(tables)
        changed |= len(tables) > 1
        return f"from {', '.join(tables)}\n"

    other = re.sub(r"\bfrom\b([^()]*?)(?=\bwhere\b)", shuffled, sql, flags=re.IGNORECASE | re.DOTALL)
    return other if changed else None


def generated(directory, scale):
    """The tables' files; made by tpchgen-cli if they are not there."""
    files = {table: directory / f"{table}.parquet" for table in TABLES}
    if not all(path.is_file() for path in files.values()):
        directory.mkdir(parents=True, exist_ok=True)
        program = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([program, "parquet", "-s", scale, "--output-dir", directory], check=True)
    return {table: str(path.resolve()) for table, path in files.items()}
