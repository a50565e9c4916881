#!/usr/bin/env bash
# What eris.traffic says beside what the processor counts: lines that were loaded from other nodes (ERIS paper, Figure 12).
#
#     [ERIS=…] tests/numa/links.sh
#
# It takes a machine with several nodes, and `perf` that may read the processor's counters. Without these it says so. The
# processor counts more than Eris does: nodes of indexes that a client looks at in the place of a sleeping AEU, stacks,
# the system. So no number is right or wrong here; a statement whose bytes are not among the processor's would be.
set -euo pipefail

eris=${ERIS:-${ERIS_CACHE:-$HOME/.cache/eris}/target/release/eris}
events=node-load-misses,node-store-misses
counted=$(mktemp)
trap 'rm -f "$counted"' EXIT

nodes=$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' 2> /dev/null | wc -l)
if [ "$nodes" -lt 2 ]; then
  echo "SKIPPED: links: not here: the machine has one node"
  exit 0
fi
if ! perf stat -x, -e "$events" -o "$counted" true 2> /dev/null || grep -q '^<not' "$counted"; then
  echo "SKIPPED: links: not allowed here: perf cannot read the processor's counters of other nodes' memory"
  exit 0
fi

load="CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t SELECT i, i FROM generate_series(1, 20000000) AS g(i);"
scan="SET numa_strategy = 'pull'; SELECT sum(v), count(DISTINCT v % 1000) FROM t;"
told="SELECT coalesce(sum(bytes), 0) FROM eris.traffic;"
for what in "load" "load and scan"; do
  statements=$load
  if [ "$what" != load ]; then
    statements="$load $scan"
  fi
  bytes=$(perf stat -x, -e "$events" -o "$counted" "$eris" --format csv -c "$statements $told" | tail -n 1)
  lines=$(awk -F, '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum + 0 }' "$counted")
  echo "eris.traffic: $bytes bytes; the processor: $((lines * 64)) bytes from other nodes; $what"
done
