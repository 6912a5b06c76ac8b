"""Numbers that the hot path repeats as literals, because an import would cost it time, are their owners'."""

import ast

import pytest

from interpreter import FIRMWARE
from shaker import inputs, names, record

HANDS = names.KEYS | names.SERVICE
INVALID = names.LATCH_A_INVALID | names.LATCH_B_INVALID
SEEN_OPEN = inputs.LATCH_A_OPEN | inputs.LATCH_B_OPEN
# What a module makes of them for itself.
MASKS = {
    ("inputs", "_MOTION"): names.MOTION,
    ("inputs", "_QUICK"): INVALID | SEEN_OPEN,
    ("inputs", "_SLOW"): HANDS,
    ("inputs", "_EARNED"): names.SECURED | names.MOTION,
    ("inputs", "_SETTLED"): names.SECURED | INVALID | HANDS | SEEN_OPEN,
    ("round", "_HANDS"): HANDS,
    ("round", "_INVALID"): INVALID,
    ("round", "_SEEN_BOTH"): SEEN_OPEN,
}


def literals(text):
    """Return {name: number} of all `NAME = const(number)` of a module."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            call = node.value
            if isinstance(call, ast.Call) and isinstance(call.args[0], ast.Constant):
                found[node.targets[0].id] = call.args[0].value
    return found


def owned(name):
    """Return the number that names.py or record.py gives to a name, or None."""
    name = name.removeprefix("_")
    for owner in (names, record):
        if hasattr(owner, name):
            return getattr(owner, name)
    return None


# Those that say so.
MODULES = sorted(
    path.stem for path in (FIRMWARE / "shaker").glob("*.py") if "test_literals.py" in path.read_text("utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_a_number_that_is_repeated_is_its_owners(module):
    text = (FIRMWARE / f"shaker/{module}.py").read_text("utf-8")
    for name, number in literals(text).items():
        owner = owned(name)
        assert owner is None or number == owner, f"{module}.{name}"


@pytest.mark.parametrize(("module", "name"), MASKS)
def test_a_mask_is_made_of_the_bits_it_stands_for(module, name):
    text = (FIRMWARE / f"shaker/{module}.py").read_text("utf-8")
    assert literals(text)[name] == MASKS[module, name]


def test_there_is_something_to_compare():
    repeated = literals((FIRMWARE / "shaker/round.py").read_text("utf-8"))
    assert sum(owned(name) is not None for name in repeated) > 50
