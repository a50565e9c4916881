"""Equality of query results from two engines that agree on values but not on types."""

import datetime
import itertools
import math
import uuid
from collections import defaultdict
from decimal import Decimal

# Sums of doubles depend on the order of the additions.
RELATIVE = 1e-9
ABSOLUTE = 1e-6


def expected_value(value):
    """A value of DuckDB's Python client in the form in which eris' JSON is compared."""
    if isinstance(value, datetime.datetime):
        return timestamp(value.isoformat(sep=" "))
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        text = value.isoformat()
        return text.rstrip("0") if value.microsecond else text
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return escaped(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value


def escaped(blob):
    """Bytes as both engines show them."""
    plain = lambda byte: 32 <= byte < 127 and chr(byte) not in "\\'\""
    return "".join(chr(byte) if plain(byte) else f"\\x{byte:02X}" for byte in blob)


def timestamp(text):
    """An ISO timestamp with exactly six digits of fraction, whichever it was printed with."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:6]:0<6}"


def actual_value(value, like):
    """A value from eris' JSON in the same form; `like` is the kind of the column's values in the expected result."""
    if like == "timestamp" and isinstance(value, str):
        return timestamp(value)
    if like == "real" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return float(value)
    return value


def column_kinds(rows, width):
    """Per column "real", "timestamp" or "exact", from DuckDB's values."""
    kinds = []
    for column in range(width):
        values = [row[column] for row in rows if row[column] is not None]
        if any(isinstance(value, float) for value in values):
            kinds.append("real")
        elif any(isinstance(value, datetime.datetime) for value in values):
            kinds.append("timestamp")
        else:
            kinds.append("exact")
    return kinds


def difference(expected, actual, order=None, names=("DuckDB", "eris")):
    """What differs between DuckDB's rows and eris' rows, as readable lines; empty when nothing does.

    Rows are compared as multisets. `order` are the positions of the columns that the query sorts by: their sequence must
    agree too, while rows equal in all of them may come in any order.
    """
    if len(expected) != len(actual):
        return [f"{len(actual)} rows instead of {len(expected)}"] + sample(expected, actual, names)
    if not expected:
        return []
    width = len(expected[0])
    wrong = next((row for row in actual if len(row) != width), None)
    if wrong is not None:
        return [f"{len(wrong)} columns instead of {width}"]
    kinds = column_kinds(expected, width)
    expected = [[expected_value(value) for value in row] for row in expected]
    actual = [[actual_value(value, kind) for value, kind in zip(row, kinds)] for row in actual]

    only_expected, only_actual = unmatched(expected, actual, kinds)
    if only_expected or only_actual:
        return [f"{len(only_expected)} rows differ"] + sample(only_expected, only_actual, names)
    if order:
        for number, (left, right) in enumerate(zip(expected, actual)):
            if any(not equal(left[column], right[column]) for column in order):
                return [f"same rows in another order, from row {number} on"] + sample([left], [right], names)
    return []


def unmatched(expected, actual, kinds):
    """Rows that the other result lacks. Rows that agree in the exact columns are paired in the order of the real ones."""
    exact = [column for column, kind in enumerate(kinds) if kind != "real"]
    real = [column for column, kind in enumerate(kinds) if kind == "real"]

    def groups(rows):
        by_key = defaultdict(list)
        for row in rows:
            by_key[tuple(comparable(row[column]) for column in exact)].append(row)
        for group in by_key.values():
            group.sort(key=lambda row: [sort_key(row[column]) for column in real])
        return by_key

    left, right = groups(expected), groups(actual)
    only_left, only_right = [], []
    for key in dict.fromkeys(itertools.chain(left, right)):
        for one, other in itertools.zip_longest(left.get(key, []), right.get(key, [])):
            same = one is not None and other is not None
            same = same and all(equal(one[column], other[column]) for column in real)
            if not same:
                only_left += [one] if one is not None else []
                only_right += [other] if other is not None else []
    return only_left, only_right


def comparable(value):
    """A hashable form in which 1, 1.0 and 1.00 are one value, and true is none of them."""
    return (type(value).__name__, value) if isinstance(value, (bool, str)) else value


def sort_key(value):
    if value is None:
        return (0, 0.0)
    return (2, value) if isinstance(value, str) else (1, value)


def equal(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return comparable(left) == comparable(right)


def sample(expected, actual, names=("DuckDB", "eris"), rows=5):
    """The first rows of both, one under the other."""
    lines = []
    for name, some in zip(names, (expected, actual)):
        lines += [f"  {name:>6}: {' | '.join(map(str, row))}" for row in some[:rows]]
        if len(some) > rows:
            lines.append(f"  {name:>6}: … {len(some) - rows} more")
    return lines
