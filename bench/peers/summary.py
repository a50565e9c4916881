"""What the rounds of all groups say: medians, Eris beside the fastest peer and beside the limit, and their means.

A group is Eris and the peers that fit into the memory beside it. A peer is compared with the times that Eris had in the
same rounds, so that a slow minute of the machine does not count for either; Eris's own medians are over all groups.
"""

import statistics

from .measure import KINDS

ERIS = "eris"


def merged(groups):
    """Milliseconds by engine, kind and query over all groups."""
    times = {}
    for group in groups:
        for engine, kinds in group.items():
            for kind, queries in kinds.items():
                for query, samples in queries.items():
                    times.setdefault(engine, {k: {} for k in KINDS})[kind].setdefault(query, []).extend(samples)
    return times


def beside_peers(groups, kind):
    """By query: the fastest peer, and how many times its time Eris took."""
    ratios = {}
    for group in groups:
        for query, own in group.get(ERIS, {}).get(kind, {}).items():
            for peer, kinds in group.items():
                if peer != ERIS:
                    ratio = statistics.median(own) / statistics.median(kinds[kind][query])
                    ratios.setdefault(query, {})[peer] = ratio
    return {query: (peer := max(ratio, key=ratio.get), ratio[peer]) for query, ratio in ratios.items()}


def beside_eris(groups, kind):
    """By peer: how many times Eris's time it took in the same rounds, the geometric mean over the queries."""
    found = {}
    for group in groups:
        own = group.get(ERIS, {}).get(kind, {})
        for peer, kinds in group.items():
            if peer != ERIS and own:
                ratios = (statistics.median(kinds[kind][query]) / statistics.median(own[query]) for query in own)
                found[peer] = statistics.geometric_mean(ratios)
    return found


def beside_limit(times, bytes_of, bandwidth):
    """By query: milliseconds that reading its least bytes takes, and how many times this Eris took with the fixed texts."""
    found = {}
    for query, samples in times.get(ERIS, {}).get("fixed", {}).items():
        milliseconds = bytes_of[query] / bandwidth * 1e3
        found[query] = (milliseconds, statistics.median(samples) / milliseconds)
    return found


def mean(values):
    """The geometric mean; None of nothing."""
    values = list(values)
    return statistics.geometric_mean(values) if values else None


def summary(groups, bytes_of, bandwidth):
    """All of it, as JSON."""
    times = merged(groups)
    report = {"engines": {}, "beside_fastest_peer": {}, "beside_limit": {}}
    for engine, kinds in times.items():
        entry = report["engines"][engine] = {}
        for kind, queries in kinds.items():
            entry[f"{kind}_ms"] = {query: [round(one, 3) for one in samples] for query, samples in queries.items()}
            entry[f"{kind}_geometric_mean_of_medians_ms"] = mean(statistics.median(samples) for samples in queries.values())
            entry[f"{kind}_beside_eris"] = beside_eris(groups, kind).get(engine, 1.0 if engine == ERIS else None)
    for kind in KINDS:
        found = beside_peers(groups, kind)
        report["beside_fastest_peer"][kind] = {
            "queries": {query: {"peer": peer, "ratio": ratio} for query, (peer, ratio) in found.items()},
            "geometric_mean": mean(ratio for _, ratio in found.values()),
        }
    found = beside_limit(times, bytes_of, bandwidth)
    report["beside_limit"] = {
        "read_bytes_per_s": bandwidth,
        "queries": {query: {"bytes": bytes_of[query], "ms": ms, "ratio": ratio} for query, (ms, ratio) in found.items()},
        "geometric_mean": mean(ratio for _, ratio in found.values()),
    }
    return report
