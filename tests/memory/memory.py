"""Statements that try to grow: none may take more memory than the limit allows, whether it answers or fails.

Each runs in a process of its own, which may hold LIMIT and SLACK. An error has to be one of memory, in words.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 500_000_000
SLACK = 150_000_000
# What takes longer is interrupted, as with Ctrl-C: it has not grown.
SECONDS = 20
# Whoever holds so much is killed, before it takes the machine's memory.
MOST = 3_000_000_000

ERIS = os.environ.get("ERIS", "eris")

WIDE = "CREATE TABLE wide AS SELECT i, repeat('x', 200000) || i AS s FROM range(20000) r(i)"
MANY = "CREATE TABLE many AS SELECT i, i % 1000 AS k FROM range(3000000) r(i);"

STATEMENTS = [
    WIDE,
    "SELECT max(length(s)) FROM (SELECT repeat('x', 200000) || i AS s FROM range(20000) r(i))",
    "SELECT count(DISTINCT s) FROM (SELECT repeat('x', 200000) || i AS s FROM range(20000) r(i))",
    "SELECT s FROM (SELECT repeat('x', 200000) || i AS s FROM range(20000) r(i)) ORDER BY s DESC LIMIT 1",
    "SELECT count(*) FROM (SELECT repeat('x', 200000) || i AS s FROM range(20000) r(i)) WHERE s LIKE '%7'",
    "SELECT string_agg(repeat('x', 200000), ',') FROM range(20000)",
    "SELECT length(string_agg(repeat('x', 20000), ',')) FROM range(20000)",
    "SELECT count(*) FROM (SELECT unnest(range(0, 1000000)) FROM range(1000))",
    "SELECT sum(u) FROM (SELECT unnest(range(0, 100000)) AS u FROM range(10000))",
    "SELECT length(repeat('a', 2147483640))",
    "SELECT repeat('a', 2147483640)",
    "SELECT count(*) FROM (SELECT repeat('a', 20000000) AS s FROM range(1000)) WHERE length(s) > 1",
    "SELECT range(0, 1000000000000)",
    "SELECT range(0, 100000000)",
    "SELECT generate_series(DATE '0001-01-01', DATE '9999-12-31', INTERVAL '1 day')",
    "SELECT array_repeat('abc', 1000000000)",
    "SELECT sum(length(lpad('a', 1000000, 'b'))) FROM range(100000)",
    "SELECT sum(length(rpad(CAST(range AS VARCHAR), 1000000, 'b'))) FROM range(100000)",
    "SELECT sum(length(replace(repeat('a', 10000), 'a', 'bbbbbbbbbb'))) FROM range(100000)",
    "SELECT array_agg(range) FROM range(200000000)",
    "SELECT length(array_agg(repeat('x', 1000))) FROM range(5000000)",
    MANY + "SELECT count(*) FROM many a, many b WHERE a.i + b.i < 0",
    MANY + "SELECT count(*) FROM many a JOIN many b ON a.k = b.k WHERE a.i < b.i",
    MANY + "SELECT max(c) FROM (SELECT k, array_agg(i) AS l, count(*) AS c FROM many GROUP BY k)",
    MANY + "SELECT k, string_agg(CAST(i AS VARCHAR), repeat(',', 1000)) FROM many GROUP BY k",
    MANY + "SELECT i, sum(i) OVER (PARTITION BY k ORDER BY i) FROM many ORDER BY 2 DESC LIMIT 1",
    "SELECT count(*) FROM (SELECT range, repeat('y', 5000) AS s FROM range(400000) ORDER BY s, range)",
    "SELECT count(*) FROM (SELECT s FROM (SELECT repeat('y', 5000) || range AS s FROM range(400000)) GROUP BY s)",
    "SELECT count(*) FROM range(300000) a JOIN (SELECT range, repeat('y', 5000) AS s FROM range(300000)) b"
    " ON a.range = b.range WHERE length(s) > 3",
    "WITH RECURSIVE t(s) AS (SELECT 'ab' UNION ALL SELECT s || s FROM t WHERE length(s) < 4000000000) "
    "SELECT max(length(s)) FROM t",
    "SELECT count(*) FROM (SELECT regexp_replace(repeat('a', 10000), 'a', 'bbbbbbbbbb', 'g') AS s FROM range(50000))"
    " WHERE length(s) > 1",
    "SELECT count(s) FROM read_csv('{wide}', max_line_size => 100000000)",
    "SELECT max(s) FROM '{parquet}'",
]


def resident(pid: int) -> int:
    """What a process holds now, in bytes."""
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, IndexError, ProcessLookupError):
        return 0


def run(sql: str) -> tuple[int, str]:
    """The most bytes that the statements held, and what was said of them."""
    command = [ERIS, "--memory", str(LIMIT), "--format", "csv", "-c", sql]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        deadline = time.monotonic() + SECONDS
        interrupted = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if resident(process.pid) > MOST:
                process.kill()
            if time.monotonic() > deadline:
                process.send_signal(signal.SIGKILL if interrupted else signal.SIGINT)
                interrupted, deadline = True, deadline + 5
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    if process.returncode < 0 and process.returncode != -2:
        text = f"ended by signal {-process.returncode} {text}"
    return usage.ru_maxrss * 1024, text


def main() -> None:
    wrong = 0
    chosen = [int(argument) for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as directory:
        wide, parquet = f"{directory}/wide.csv", f"{directory}/wide.parquet"
        with open(wide, "w") as file:
            file.write("s\n")
            for line in range(100):
                file.write("x" * 10_000_000 + f"{line}\n")
        made = f"COPY (SELECT repeat('x', 200000) || i AS s FROM range(8000) r(i)) TO '{parquet}'"
        subprocess.run([ERIS, "-c", made], check=True)
        for number, statement in enumerate(STATEMENTS):
            if chosen and number not in chosen:
                continue
            sql = statement.replace("{wide}", wide).replace("{parquet}", parquet)
            held, said = run(sql)
            is_error = said and "out of memory" not in said and "interrupted" not in said
            if held > LIMIT + SLACK or is_error:
                wrong += 1
                print(f"{number}: {held // 1_000_000} MB: {statement[:110]}\n    {said[:200]}", flush=True)
            elif chosen:
                print(f"{number}: {held // 1_000_000} MB: {said[:200]}")
    if wrong:
        sys.exit(f"{wrong} of {len(STATEMENTS)} statements hold too much, or fail otherwise")
    print(f"OK: {len(STATEMENTS)} statements hold less than {(LIMIT + SLACK) // 1_000_000} MB each")


if __name__ == "__main__":
    main()
