"""`make mutants`: small mistakes put into the firmware one at a time; the module's unit tests must notice.

cosmic-ray finds the places and makes the mistakes: its operators, thinned to one or two for each place, and
four more below for what it has none (a statement left out, `|=` and its like, bytes, `in`). Its own way to
run tests starts an interpreter for each mutant; here each is a fork of one that has pytest loaded, in a copy
of the tree under build/mutants. Hypothesis is derandomized there, so that a figure is the same twice.

A mutant is killed when a test fails, when the module cannot be imported, or when it computes for ever. One
that survives must be in MUTANTS.md with the reason why nothing can notice; the exit status is 1 otherwise.
The figures go to build/mutants.json, each module's with the SHA-256 of the text they speak of: modules can be
tried at different times. `make score` enters them into the README, as long as no text has changed since.
The search has mutants of its own (explore_mutants.py): chosen by hand, and judged by the invariants alone.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/mutants"
RESULT = ROOT / "build/mutants.json"
EXPLAINED = Path(__file__).with_name("MUTANTS.md")
COPIED = ("firmware", "host_tests", "tools", "board")

_SLOW = "a_cut or bits_flipped or flash_cost or tried_again or thousand or many_marks"

# By module: the tests as arguments of pytest, quick ones first. What runs under MicroPython and takes long is
# left out, as it says nothing more about a mistake in the logic.
MODULES = {
    "rules": (["test_rules.py", "-k", "not micropython"],),
    "round": (
        ["test_literals.py"],
        ["test_round.py"],
        ["test_core.py", "-k", "not allocates and not from_the_heap"],
    ),
    "interlock": (["test_interlock.py"], ["test_literals.py"]),
    "inputs": (["test_inputs.py"], ["test_literals.py"]),
    "agitator": (["test_agitator.py"], ["test_literals.py"]),
    "journal": (
        ["test_literals.py"],
        ["test_journal.py", "-k", f"not interpreter and not ({_SLOW})"],
        ["test_journal.py", "-k", f"not interpreter and ({_SLOW})"],
    ),
}

# One or two of the eleven, or six, that cosmic-ray has for each operator: the nearest mistakes.
OPERATORS = {
    "Binary": (
        "Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "RShift_LShift",
        "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitAnd",
    ),
    "Comparison": (
        "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt",
        "GtE_Lt", "Is_IsNot", "IsNot_Is",
    ),
    "Unary": ("Delete_USub", "Delete_Invert", "Delete_Not"),
}  # fmt: skip
PLAIN = (
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer",
    "ZeroIterationForLoop",
)  # fmt: skip

SURVIVED, KILLED, ENDLESS = "survived", "killed", "endless"
_BROKEN = 99  # exit status of a child that could not even start pytest
# What stops pytest from complaining that Hypothesis is loaded already: that is the point of forking.
_LOADED = "ignore:Module already imported"


# -- making mutants -------------------------------------------------------------------------------------


def chosen_operators():
    """Return [(name, operator)]: cosmic-ray's, thinned, and our own."""
    from cosmic_ray.plugins import get_operator
    from parso.python import tree

    class Own:
        """An operator that replaces some leaves or statements by other text."""

        def mutation_positions(self, node):
            for _ in self.others(node):
                yield node.start_pos, node.end_pos

        def mutate(self, node, index):
            return tree.Name(node.get_first_leaf().prefix + self.others(node)[index], node.start_pos)

        def others(self, node):
            """Return what may stand in place of the node."""
            raise NotImplementedError

    class LeaveOut(Own):
        """A statement inside a function that does something."""

        def others(self, node):
            parent = node.parent
            if parent is None or parent.type != "simple_stmt" or node.search_ancestor("funcdef") is None:
                return []
            does = node.type in ("expr_stmt", "atom_expr", "raise_stmt", "del_stmt", "power")
            return ["pass"] if does else []

    class Augmented(Own):
        """`|=` for `&=` and so on, and `=` for both."""

        OTHERS = {"|=": ["&=", "="], "&=": ["|=", "="], "+=": ["-=", "="], "-=": ["+=", "="]}

        def others(self, node):
            return self.OTHERS.get(getattr(node, "value", ""), []) if node.type == "operator" else []

    class Bytes(Own):
        """A byte one higher, in a constant of bytes."""

        def others(self, node):
            if node.type != "string" or not node.value.startswith("b"):
                return []
            data = eval(node.value)
            return [repr(data[:i] + bytes([data[i] + 1 & 255]) + data[i + 1 :]) for i in range(len(data))]

    class In(Own):
        """`in` for `not in` (a loop has no operator)."""

        def others(self, node):
            inside = node.type == "keyword" and node.value == "in" and node.parent.type == "comparison"
            return ["not in"] if inside else []

    names = [f"Replace{kind}Operator_{pair}" for kind in OPERATORS for pair in OPERATORS[kind]]
    own = [("LeaveOut", LeaveOut()), ("Augmented", Augmented()), ("Bytes", Bytes()), ("In", In())]
    return [(name, get_operator("core/" + name)()) for name in (*names, *PLAIN)] + own


def mutants_of(source):
    """Return [(line, column, operator's name, operator, occurrence)] of a module, by place."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(source)))
    found = []
    for name, operator in chosen_operators():
        occurrence = 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                # A lone comparison has its opposite among the comparisons.
                if name != "AddNot" or node.children[1].type != "comparison":
                    found.append((*start, name, operator, occurrence))
                occurrence += 1
    found.sort(key=lambda mutant: (mutant[0], mutant[1], mutant[2], mutant[4]))
    return found


def mutated(source, mutant):
    """Return the module with that mistake in it."""
    from cosmic_ray.mutating import mutate_code

    return mutate_code(source, mutant[3], mutant[4])


def describe(module, source, text):
    """Return (id, place, was, is): the id outlives changes elsewhere in the module."""
    old, new = source.splitlines(), text.splitlines()
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    tail = next(i for i, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    was = " ".join(line.strip() for line in old[first : max(len(old) - tail, first + 1)])
    now = " ".join(line.strip() for line in new[first : max(len(new) - tail, first + 1)])
    inside, indent = "", 99
    for line in old[first::-1]:
        match = re.match(r"( *)(?:def|class) (\w+)", line)
        if match and len(match[1]) < indent:
            inside, indent = match[2] + ("." + inside if inside else ""), len(match[1])
    same = sum(line.strip() == old[first].strip() for line in old[:first])
    mark = hashlib.sha256(repr((module, inside, was, now, same)).encode()).hexdigest()[:6]
    return mark, f"{module}.py:{first + 1} {inside or 'constants'}", was, now


# -- judging them ---------------------------------------------------------------------------------------


class Killers:
    """A plugin of pytest: tests that have noticed most so far go first, and the one that notices is told."""

    def __init__(self):
        self._noticed = {}  # test: how many mutants
        self._tell = -1

    def listen(self):
        """Return the pipe on which the next child tells."""
        hear, self._tell = os.pipe()
        return hear

    def heard(self, hear):
        """Note what the child has told, if anything; close the pipe."""
        os.close(self._tell)
        with os.fdopen(hear, "rb") as pipe:
            test = pipe.read()
        if test:
            self._noticed[test] = self._noticed.get(test, 0) + 1

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: -self._noticed.get(item.nodeid.encode(), 0))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(self._tell, report.nodeid.encode())


class Tree:
    """A copy of the tree, in which one module at a time is another."""

    def __init__(self, root):
        self.root = root
        self._killers = Killers()
        self._stamp = int(time.time())
        for name in COPIED:
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root)
        (root / "README.md").write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")

    def source(self, module):
        """Return the module's text."""
        return (ROOT / f"firmware/shaker/{module}.py").read_text("utf-8")

    def put(self, module, text):
        """Let the module be `text`, with a time stamp of its own, so that no bytecode of another is taken."""
        path = self.root / f"firmware/shaker/{module}.py"
        path.write_text(text, "utf-8")
        self._stamp += 1
        os.utime(path, (self._stamp, self._stamp))

    def run(self, stages, limits):
        """Run the stages, each within its seconds of processor time; return the outcome and the times."""
        used = []
        for tests, cpu_s in zip(stages, limits, strict=True):
            status, seconds = self._fork(tests, cpu_s)
            used.append(seconds)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
                return ENDLESS, used
            code = os.waitstatus_to_exitcode(status)
            if code in (4, 5, _BROKEN):
                raise SystemExit(f"these tests cannot be run: {' '.join(tests)}")
            if code:
                return KILLED, used
        return SURVIVED, used

    def _fork(self, tests, cpu_s):
        hear = self._killers.listen()
        pid = os.fork()
        if not pid:
            try:
                os.setpgid(0, 0)
                self._test(tests, cpu_s)
            finally:
                os._exit(_BROKEN)
        pidfd = os.pidfd_open(pid)
        try:
            if not select.select([pidfd], [], [], 60 + 20 * cpu_s)[0]:
                os.kill(pid, signal.SIGKILL)  # waits for what never comes
        finally:
            os.close(pidfd)
        _, status, used = os.wait4(pid, 0)
        self._killers.heard(hear)
        return status, used.ru_utime + used.ru_stime

    def _test(self, tests, cpu_s):
        null = os.open(os.devnull, os.O_RDWR)
        if "MUTANTS_SHOW" not in os.environ:
            for fd in (0, 1, 2):
                os.dup2(null, fd)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        os.chdir(self.root)
        sys.dont_write_bytecode = False  # whatever the environment wants elsewhere: half of the time
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "host_tests"]
        hypothesis.settings.register_profile(
            "mutants",
            derandomize=True,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )
        hypothesis.settings.load_profile("mutants")
        file, *rest = tests
        words = ["-xq", "--noconftest", "-W", _LOADED, "-p", "no:cacheprovider", f"host_tests/{file}", *rest]
        os._exit(pytest.main(words, plugins=[self._killers]))


def found():
    """Return {module: row} of build/mutants.json, empty without it."""
    rows = json.loads(RESULT.read_text("utf-8"))["modules"] if RESULT.exists() else []
    return {row["module"]: row for row in rows}


def explained():
    """Return the ids that MUTANTS.md explains."""
    text = EXPLAINED.read_text("utf-8") if EXPLAINED.exists() else ""
    return set(re.findall(r"^\| `([0-9a-f]{6})` \|", text, re.MULTILINE))


class Memory:
    """Which mutants of a module were killed, kept in a file while the module's text is the same."""

    def __init__(self, module, source, again):
        self._path = BUILD / f"{module}.killed"
        self.sha256 = hashlib.sha256(source.encode()).hexdigest()
        lines = self._path.read_text("utf-8").splitlines() if again and self._path.exists() else []
        self._lines = set(lines[1:] if lines[:1] == [self.sha256] else [])
        self._path.write_text("".join(text + "\n" for text in [self.sha256, *sorted(self._lines)]), "utf-8")

    def outcome(self, mutant):
        """Return how it ended, or None."""
        for ended in (KILLED, ENDLESS):
            if self._line(mutant, ended) in self._lines:
                return ended
        return None

    def note(self, mutant, ended):
        """Keep how it ended, unless it survived."""
        if ended != SURVIVED:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(self._line(mutant, ended) + "\n")

    def _line(self, mutant, ended):
        row, column, name, _, occurrence = mutant
        return f"{row} {column} {name} {occurrence} {ended}"


def judge(tree, module, step, known, again=False):
    """Try every `step`-th mutant of the module; return its row of the result.

    `again`: what was killed before counts as killed, as long as the module's text is the same.
    """
    stages = MODULES[module]
    source = tree.source(module)
    memory = Memory(module, source, again)
    tree.put(module, source)
    unlimited = [600] * len(stages)
    tree.run(stages, unlimited)  # leaves the bytecode of all that is imported
    outcome, used = tree.run(stages, unlimited)
    if outcome != SURVIVED:
        raise SystemExit(f"the tests of {module} fail without any mutant: {stages}")
    limits = [int(2 * seconds) + 2 for seconds in used]
    mutants = mutants_of(source)
    row = {
        "module": module,
        "sha256": memory.sha256,
        "mutants": len(mutants),
        "tried": 0,
        "killed": 0,
        "endless": 0,
        "survivors": [],
    }
    chosen = mutants[::step]
    for mutant in chosen:
        outcome = memory.outcome(mutant)
        if not outcome:
            text = mutated(source, mutant)
            tree.put(module, text)
            outcome, _ = tree.run(stages, limits)
            memory.note(mutant, outcome)
        row["tried"] += 1
        if row["tried"] % 25 == 0:
            print(f"  {row['tried']} of {len(chosen)}", file=sys.stderr, flush=True)
        if outcome == SURVIVED:
            mark, place, was, now = describe(module, source, text)
            row["survivors"].append({"id": mark, "place": place, "was": was, "is": now})
            print(f"  {'known' if mark in known else 'NEW  '} {mark} {place}: {was} -> {now}", flush=True)
        else:
            row["killed"] += 1
            row["endless"] += outcome == ENDLESS
    tree.put(module, source)
    row["explained"] = sum(survivor["id"] in known for survivor in row["survivors"])
    return row


def enter(row):
    """Put a module's row into build/mutants.json, in place of the one before."""
    kept = found() | {row["module"]: row}
    on = f"CPython {platform.python_version()}"
    RESULT.write_text(json.dumps({"on": on, "modules": [kept[m] for m in MODULES if m in kept]}, indent=1))


def line(row):
    """Return the row of a table for one module."""
    return (
        f"{row['module']:10} {row['mutants']:7} {row['tried']:6} {row['killed']:7} "
        f"{len(row['survivors']):9} {row['explained']:10} {100 * row['killed'] / row['tried']:6.1f} %"
    )


def main(arguments=None):
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", choices=[[], *MODULES], help="only these; all by default")
    parser.add_argument("--step", type=int, help="try every n-th mutant, and leave build/mutants.json alone")
    parser.add_argument("--again", action="store_true", help="what was killed before, stays so")
    parser.add_argument("--cpu", type=int, default=20, help="seconds after which it is endless")
    parser.add_argument("--replace", nargs=2, metavar=("OLD", "NEW"), help="try one mutant made by hand")
    args = parser.parse_args(arguments)
    os.nice(5)
    tree = Tree(BUILD / str(os.getpid()))
    try:
        return run(tree, args, parser)
    finally:
        shutil.rmtree(tree.root)


def run(tree, args, parser):
    """Do what the command line asks for; return the exit status."""
    if args.replace:
        (module,) = args.modules
        source = tree.source(module)
        if source.count(args.replace[0]) != 1:
            parser.error("OLD must be there once")
        tree.put(module, source.replace(*args.replace))
        stages = MODULES[module]
        print(tree.run(stages, [args.cpu] * len(stages))[0])
        return 0
    known = explained()
    rows = []
    started = time.monotonic()
    for module in args.modules or MODULES:
        print(module, flush=True)
        rows.append(judge(tree, module, args.step or 1, known, args.again))
        if not args.step:
            enter(rows[-1])
    print("module     mutants  tried  killed  survived  explained   score")
    for row in rows:
        print(line(row))
    minutes = (time.monotonic() - started) / 60
    print(f"{minutes:.0f} minutes")
    return int(any(len(row["survivors"]) > row["explained"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
