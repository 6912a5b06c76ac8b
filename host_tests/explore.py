"""`make explore ARGS="[--full] [--scenario-out DIR]"`: the exhaustive search and its figures.

Prints what each part and each build covered; with a broken rule the shortest scenario that shows it, and
exits with 1. The search itself and why it leaves nothing out: exploration.py.
"""

import argparse
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def main(argv=None):
    """Explore, print the figures, and write a scenario for whatever is broken."""
    sys.path[:0] = [str(path) for path in (HERE, HERE / "shims", HERE.parent / "firmware")]
    import exploration
    import explore_parts
    import explore_scenario
    from explore_rules import Violation
    from shaker.names import PHASES

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="six builds, all pairs of changes, no symmetry")
    parser.add_argument("--scenario-out", metavar="DIR", type=pathlib.Path, help="where scenarios go")
    args = parser.parse_args(argv)
    started = time.perf_counter()
    bad = states = transitions = 0
    modules = exploration.load()
    for part in explore_parts.PARTS:
        try:
            print(part(modules), flush=True)
        except Violation as violation:  # the search goes on, for the scenario that shows it
            bad += 1
            print(f"BROKEN {violation}", flush=True)
    for found in exploration.explore(args.full):
        states += found.states
        transitions += found.transitions
        print(
            f"{found.name}: {found.states} states, {found.restored} restored, "
            f"{found.transitions} transitions, {found.seconds:.1f} s"
        )
        print("    " + ", ".join(f"{PHASES[i]} {n}" for i, n in enumerate(found.phases) if n), flush=True)
        if found.violation:
            bad += 1
            config = dict(exploration.CONFIGS + exploration.MORE_CONFIGS)[found.name]
            text = explore_scenario.shortest(found, config)
            print(f"BROKEN {found.violation}\n{text}", flush=True)
            if args.scenario_out:
                args.scenario_out.mkdir(parents=True, exist_ok=True)
                name = found.name.replace(", ", "_").replace(" ", "_") + ".scn"
                (args.scenario_out / name).write_text(text, "utf-8")
    verdict = f"{bad} broken" if bad else "I1-I8 hold in each, no dead end"
    print(f"{states} states, {transitions} transitions, {time.perf_counter() - started:.1f} s; {verdict}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
