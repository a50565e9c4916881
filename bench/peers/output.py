"""The report as a table for the terminal, as a figure, and as raw numbers."""

import json
import math
import statistics
from html import escape

from .measure import KINDS

# Told apart also by those who see few colours (Okabe and Ito).
COLOURS = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]


def table(report):
    """As Markdown; each cell is the median with the benchmark's own literals / with fresh ones, in milliseconds."""
    engines, peers, limit = report["engines"], report["beside_fastest_peer"], report["beside_limit"]
    header = ["query", *(engine["version"] for engine in engines.values())]
    header += ["eris / fastest peer", "fastest", "limit, ms", "eris / limit"]
    rows = [header, ["---"] * len(header)]
    for query in next(iter(engines.values()))["fixed_ms"]:
        cells = [both(statistics.median(engine[f"{kind}_ms"][query]) for kind in KINDS) for engine in engines.values()]
        beside = [peers[kind]["queries"].get(query, {}) for kind in KINDS]
        cells.append(both(one.get("ratio") for one in beside))
        cells.append(" / ".join(dict.fromkeys(one["peer"] for one in beside if one)))
        own = limit["queries"].get(query, {})
        rows.append([query, *cells, digits(own.get("ms")), digits(own.get("ratio"))])
    means = [both(engine[f"{kind}_geometric_mean_of_medians_ms"] for kind in KINDS) for engine in engines.values()]
    ratios = both(peers[kind]["geometric_mean"] for kind in KINDS)
    rows.append(["geometric mean", *means, ratios, "", mean_of_limits(limit), digits(limit["geometric_mean"])])
    rest = [""] * 4
    beside = [both(engine[f"{kind}_beside_eris"] for kind in KINDS) for engine in engines.values()]
    rows.append(["eris, same rounds = 1", *beside, *rest])
    loads = [digits(engine["load_s"] + engine["settle_s"]) for engine in engines.values()]
    rows.append(["load to quiescence, s", *loads, *rest])
    memory = [digits(engine["resident_bytes"] / 2**30) for engine in engines.values()]
    rows.append(["resident memory, GiB", *memory, *rest])
    return title(report) + "\n\n" + aligned(rows) + "\n\n" + notes(report)


def aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"

    return "\n".join(map(line, rows))


def title(report):
    machine = report["machine"]
    return (
        f"Star Schema Benchmark, {report['fact_rows']:,} fact rows, {machine['cores']} cores ({machine['cpu']});"
        f" median ms of {report['rounds']} rounds per group, own literals / fresh literals (seed {report['seed']})"
    )


def notes(report):
    groups = "; ".join(" + ".join(group) for group in report["groups"])
    load = ", ".join(f"{one:.1f}" for one in report["load_average"])
    bandwidth = report["beside_limit"]["read_bytes_per_s"] / 1e9
    return (
        f"Groups in memory together, measured in interleaved rounds: {groups}.\n"
        f"Limit: least bytes of the fact table at {bandwidth:.1f} GB/s, sequential reads of all cores right before the run."
        f" Load average: {load}."
    )


def mean_of_limits(limit):
    values = [one["ms"] for one in limit["queries"].values()]
    return digits(statistics.geometric_mean(values) if values else None)


def both(values):
    return " / ".join(digits(value) for value in values if value is not None)


def digits(value):
    """About three digits."""
    if value is None:
        return ""
    return f"{value:.{max(0, 2 - math.floor(math.log10(max(value, 0.01))))}f}"


LEFT, TOP, STEP, WIDTH, RIGHT = 50, 60, 24, 640, 20


def figure(report):
    """One row per query, a dot per engine on a logarithmic axis: full for the benchmark's own literals, hollow for fresh ones,
    and a bar for the limit."""
    engines, limits = report["engines"], report["beside_limit"]["queries"]
    medians = {
        (engine, kind, query): statistics.median(samples)
        for engine, entry in engines.items()
        for kind in KINDS
        for query, samples in entry[f"{kind}_ms"].items()
    }
    values = [*medians.values(), *(one["ms"] for one in limits.values())]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    queries = list(next(iter(engines.values()))["fixed_ms"])
    base = TOP + STEP * len(queries)

    def x(value):
        return round(LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    def line(x1, x2, y1, y2, colour, width=1):
        return f'<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>'

    def text(x1, y, words, anchor="start", size=12):
        return f'<text x="{x1}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'

    def dot(x1, y, colour, fill):
        return f'<circle cx="{x1}" cy="{y}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'

    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {base + 45}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(LEFT, 20, f"Star Schema Benchmark, scale {report['scale']:g}: median ms", size=15),
    ]
    for number, entry in enumerate(engines.values()):
        place = LEFT + number * (WIDTH - LEFT - RIGHT) // len(engines)
        svg += [dot(place, 38, COLOURS[number], COLOURS[number]), text(place + 7, 42, entry["version"], size=10)]
    for power in range(low, high + 1):
        at = x(10**power)
        svg += [line(at, at, TOP - 10, base, "#ddd"), text(at, base + 16, f"{10.0**power:g}", "middle")]
    for row, query in enumerate(queries):
        y = TOP + row * STEP + STEP // 2
        svg += [text(LEFT - 10, y + 4, query, "end"), line(LEFT, WIDTH - RIGHT, y, y, "#eee")]
        if query in limits:
            at = x(limits[query]["ms"])
            svg.append(line(at, at, y - 8, y + 8, "#888", 3))
        for colour, engine in zip(COLOURS, engines):
            for kind, fill in zip(KINDS, (colour, "none")):
                svg.append(dot(x(medians[engine, kind, query]), y, colour, fill))
    key = "full: the benchmark's own literals; hollow: fresh literals; grey bar: the limit of the memory's bandwidth"
    svg.append(text(LEFT, base + 36, key, size=11))
    return "\n".join(svg) + "\n</svg>\n"


def save(report, path):
    """Adds the report to the file's entries, where one of the same name is replaced, and draws the figure beside the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = json.loads(path.read_text()) if path.is_file() else {}
    name = f"ssb scale {report['scale']:g}" + ("" if report["key_recoding"] else ", no re-coding")
    entries[name] = report
    path.write_text(json.dumps(entries, indent=1) + "\n")
    drawing = path.with_name(f"{path.stem}-{name.replace(',', '').replace(' ', '-')}.svg")
    drawing.write_text(figure(report))
    return drawing
