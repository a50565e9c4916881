#!/usr/bin/env python3
"""Shows on a machine with four NUMA nodes, which is emulated, that memory lies where it should, and that Eris tells where it does not.

    [ERIS=…] [CI=true] tests/numa/pages.py [--verbose]

Runs the tests of placement of the crates `numa` and `engine` there, which have little to say on a machine with one node; then `eris` itself,
with room on all nodes, with data that is pulled from node to node, and with a node that others have filled. `--verbose` shows where every
page is.

Without what it takes (see machine.py) it says so and does nothing, unless CI=true: then it fails.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("ERIS_CACHE") or Path.home() / ".cache/eris")
ERIS = os.environ.get("ERIS") or str(CACHE / "target/release/eris")
# In megabytes. The first node also has the kernel and all programs; the last one is small, so that it can be filled.
NODES = [1024, 256, 256, 160]
SECONDS = 400
TESTS = ["eris-numa", "eris-engine"]

LOAD = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s TEXT UNIQUE);
INSERT INTO t SELECT i, i * 7, 's' || i FROM generate_series(1, 50000) AS g(i);
CREATE INDEX by_v ON t (v);
"""
# Whether anything is elsewhere: of all memory by node, of tables by their owners; and whether the parts of the table
# were looked at.
ASK = """
SELECT (SELECT sum(elsewhere_bytes) FROM eris.nodes) > 0 AS nodes,
  (SELECT sum(elsewhere_bytes) FROM eris.placement) > 0 AS tables,
  (SELECT count(DISTINCT part) FROM eris.placement WHERE resident_bytes > 0) AS parts
"""

WIDE = """
CREATE TABLE wide AS SELECT i AS id, i * 7 % 1000 AS v, i * i % 100003 AS w FROM generate_series(1, 1000000) AS g(i);
"""
SCANS = """
SELECT count(*), sum(w) FROM wide WHERE v < 500;
SELECT v % 7 AS g, count(*), min(w), max(w), sum(id) FROM wide GROUP BY g ORDER BY g;
SELECT sum(a.w) FROM wide a JOIN wide b ON a.id = b.w WHERE b.v < 10;
"""
# Whether scans have read memory of other nodes.
PULLED = "SELECT coalesce(sum(bytes), 0) > 0 AS pulled FROM eris.traffic WHERE kind = 'scan'"

SCRIPT = f"""
export ERIS_NUMA_NODES={len(NODES)} RUST_BACKTRACE=1
status=0
for test in {" ".join(TESTS)}; do
  $test --nocapture --test-threads=1 || status=1
done

eris_says() {{
  eris -c "{LOAD}" -c "SELECT * FROM eris.nodes" -c "SELECT * FROM eris.placement" 2> /dev/null
  said=$(eris --format csv -c "{LOAD}" -c "{ASK}" 2> /errors | tail -n 1)
  if [ "$said" != "$1" ]; then echo "eris says $said instead of $1"; cat /errors; status=1; fi
}}
echo "eris on a machine with room"
eris_says false,false,4
echo "eris with operations that are pushed, and with data that is pulled"
for strategy in push pull; do
  eris --format csv -c "{WIDE}" -c "SET numa_strategy = $strategy" -c "{SCANS}" -c "{PULLED}" > /$strategy 2> /errors \\
    || {{ cat /errors; status=1; }}
  cat /$strategy
  tail -n 1 /$strategy > /$strategy.pulled
  head -n -1 /$strategy > /$strategy.answers
done
cmp /push.answers /pull.answers || status=1
[ "$(cat /push.pulled /pull.pulled)" = "$(echo false; echo true)" ] || {{ echo "what was pulled is wrong"; status=1; }}
rm /push* /pull*
echo "eris on a machine with a full node"
mkdir /full
mount -t tmpfs -o mpol=prefer:{len(NODES) - 1},size={NODES[-1]}m none /full
dd if=/dev/zero of=/full/file bs=1M count={NODES[-1]} 2> /dev/null
eris_says true,true,4
exit $status
"""


def programs():
    """What is to run, by name."""
    selection = "--workspace --exclude eris-python --test placement"
    command = f"cargo test --release {selection} --no-run --message-format=json".split()
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = {"eris": ERIS}
    for message in map(json.loads, lines):
        if message.get("executable") and message["target"]["name"] == "placement":
            package = Path(message["manifest_path"]).parent.name
            found[f"eris-{package}"] = message["executable"]
    missing = set(TESTS) - set(found)
    assert not missing, f"{missing} have no test `placement`"
    return found


def main():
    began = time.monotonic()
    try:
        machine.check()
        status, printed = machine.run(SCRIPT, programs(), NODES, SECONDS)
    except machine.Missing as missing:
        is_required = os.environ.get("CI") == "true"
        print(f"{'FAILED' if is_required else 'SKIPPED'}: test on {len(NODES)} NUMA nodes: {missing}")
        return int(is_required)
    except machine.Broken as broken:
        print(broken)
        return 1
    if status != 0 or "--verbose" in sys.argv:
        print(printed)
    if status == 0:
        print(f"OK: pages lie where they should on {len(NODES)} NUMA nodes, and Eris tells of others ({time.monotonic() - began:.0f} s)")
    return status


if __name__ == "__main__":
    sys.exit(main())
