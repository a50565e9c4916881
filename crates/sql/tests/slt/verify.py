#!/usr/bin/env python3
"""Runs the sqllogictest files of this folder in DuckDB, as an oracle for their expected results.

    verify.py [--write] [file ...]

Records with `onlyif eris` or `skipif duckdb` are passed over; `statement error` must fail in DuckDB too, whatever its
message. With --write the expected rows are replaced by DuckDB's. Needs the Python package duckdb."""

import datetime
import decimal
import os
import pathlib
import sys

import duckdb


def shown(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return repr(value).replace("e+", "e")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        text = value.replace(microsecond=0).isoformat(sep=" ")
        if value.microsecond:
            text += f".{value.microsecond:06}"
        return text
    if isinstance(value, bytes):
        plain = lambda byte: 32 <= byte < 127 and chr(byte) not in "\\'\""
        value = "".join(chr(byte) if plain(byte) else f"\\x{byte:02X}" for byte in value)
    if isinstance(value, datetime.time):
        text = value.isoformat()
        return text.rstrip("0") if value.microsecond else text
    if value == "":
        return "(empty)"
    return str(value)


def records(text):
    """Blocks of lines between blank lines, with their first line number."""
    block, start = [], 1
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "" and block:
            yield start, block
            block = []
        elif line.strip() != "":
            if not block:
                start = number
            block.append(line)
    if block:
        yield start, block


def run(path, write):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    failures, output = 0, []
    for start, block in records(path.read_text()):
        head = [line for line in block if not line.startswith("#")]
        notes = [line for line in block if line.startswith("#")]
        conditions = []
        while head and head[0].split()[0] in ("skipif", "onlyif"):
            conditions.append(head.pop(0))
        skipped = any(
            (kind == "skipif") == (engine == "duckdb") for kind, engine in (c.split() for c in conditions)
        )
        if not head or skipped or head[0].split()[0] not in ("statement", "query"):
            output.append("\n".join(block))
            continue
        command = head[0].split()
        lines, expected = head[1:], None
        if "----" in lines:
            at = lines.index("----")
            lines, expected = lines[:at], lines[at + 1:]
        sql = "\n".join(lines)

        def complain(message):
            nonlocal failures
            failures += 1
            print(f"{path.name}:{start}: {message}\n    {sql}")

        try:
            rows = connection.execute(sql).fetchall()
            error = None
        except duckdb.Error as raised:
            rows, error = [], raised
        if command[:2] == ["statement", "error"]:
            if error is None:
                complain("DuckDB has no error")
        elif error is not None:
            complain(f"DuckDB: {error}")
        elif command[0] == "statement" and command[1] == "count":
            if rows[0][0] != int(command[2]):
                complain(f"DuckDB: {rows[0][0]} rows")
        elif command[0] == "query":
            actual = [" ".join(shown(value) for value in row) for row in rows]
            if "rowsort" in command:
                actual = [" ".join(row) for row in sorted([shown(value) for value in row] for row in rows)]
            if write:
                block = notes + conditions + [head[0]] + lines + ["----"] + actual
            elif [" ".join(line.split()) for line in expected or []] != [" ".join(line.split()) for line in actual]:
                complain("DuckDB: " + " | ".join(actual))
        output.append("\n".join(block))
    if write:
        path.write_text("\n\n".join(output) + "\n")
    return failures


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    here = pathlib.Path(__file__).resolve().parent
    paths = [pathlib.Path(argument).resolve() for argument in arguments] or sorted(here.glob("*.slt"))
    # Files are named from there on, as in the test of the crate.
    os.chdir(here.parent.parent)
    failures = sum(run(path, "--write" in sys.argv) for path in paths)
    print(f"{len(paths)} files, {failures} differences")
    sys.exit(1 if failures else 0)


main()
