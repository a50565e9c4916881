"""Rounds of random statements: the options that they have in common, and the loop over their seeds."""

import argparse
import os
import time

import duckdb

from common.process import find_binary


def parser(description, variable, rounds, each):
    """The options of all rounds. `variable` is the environment's word for how many there are, `rounds` the default,
    `each` what a round has of its own."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    count = int(os.environ.get(variable, rounds))
    made.add_argument("--eris", help="the binary [ERIS, or the build's]")
    made.add_argument("--seed", type=int, default=first_seed(), help="first round's seed [ERIS_ORACLE_SEED, or 1]")
    made.add_argument("--rounds", type=int, default=count, help=f"rounds, each with its own {each} [{variable}, or {rounds}]")
    made.add_argument("--topologies", default="1x1,1x2,4x2", help="each round takes one of these [%(default)s]")
    made.add_argument("--stop-after", type=int, default=10, help="end after so many failures [%(default)s]")
    made.add_argument("--timeout", type=int, default=300, help="seconds for a round's statements [%(default)s]")
    return made


def first_seed():
    """Fixed, so that a change is judged by the same queries as the one before it; new ones are for the night."""
    seed = os.environ.get("ERIS_ORACLE_SEED", "1")
    return int(time.time()) if seed == "clock" else int(seed)


def play(options, play_round):
    """Plays all rounds; 1 if anything differs. `play_round(binary, seed, topologies, options)` counts what does."""
    binary = find_binary(options.eris)
    topologies = options.topologies.split(",")
    print(f"seed {options.seed}, {options.rounds} rounds, DuckDB {duckdb.__version__}")
    failures = 0
    for number in range(options.rounds):
        failures += play_round(binary, options.seed + number, topologies, options)
        if failures >= options.stop_after:
            print(f"stopped after {failures} failures")
            break
    return 1 if failures else 0
