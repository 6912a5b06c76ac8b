"""The pages that follow from the firmware: current, and changed by what they are made from."""

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import docpages
import figures
import interpreter
import references
import roundgraph
from shaker import names, settings
from shakerctl import faults

FIRMWARE = interpreter.FIRMWARE
ROUND = (FIRMWARE / "shaker/round.py").read_text()
NAMES = (FIRMWARE / "shaker/names.py").read_text()
SETTINGS = (FIRMWARE / "shaker/settings.py").read_text()
ROWS = docpages.transitions(ROUND)


def script(path):
    """Load tools/docs.py as it is run."""
    spec = importlib.util.spec_from_file_location("docs_script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without(source, words):
    """Return source without the one line that holds `words`."""
    lines = source.splitlines(keepends=True)
    kept = [line for line in lines if words not in line]
    assert len(kept) == len(lines) - 1
    return "".join(kept)


# -- the program -----------------------------------------------------------------------------------------


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """tools/docs.py over a copy of the pages."""
    module = script(interpreter.ROOT / "tools/docs.py")
    folder = tmp_path / "firmware/docs"
    folder.mkdir(parents=True)
    for path in [*docpages.pages(), docpages.DOCS / "INTERLOCK.md", docpages.DOCS / "SPEC.md"]:
        shutil.copy(path, folder)
    monkeypatch.setattr(docpages, "DOCS", folder)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


@pytest.mark.parametrize("name", ["ROUND.md", "round.svg", "EVENTS.md", "SETTINGS.md"])
def test_a_page_that_is_out_of_date_is_found_and_remade(docs, name, capsys):
    assert docs.main(["--check"]) == 0
    page = docpages.DOCS / name
    text = page.read_text()
    page.write_text(text.replace("a", "e", 1))
    assert docs.main(["--check"]) == 1
    assert capsys.readouterr().err == f"firmware/docs/{name} is out of date: run 'make docs'\n"
    assert docs.main([]) == 0
    assert page.read_text() == text
    page.unlink()
    assert docs.main(["--check"]) == 1


def test_an_invariant_that_is_not_quoted_is_found(docs, capsys):
    page = docpages.DOCS / "INTERLOCK.md"
    page.write_text(page.read_text().replace("no shake can start.", "a shake may start."))
    assert docs.main(["--check"]) == 1
    assert "does not quote **I3** as SPEC has it" in capsys.readouterr().err


def test_all_eight_invariants_are_compared():
    spec = (FIRMWARE / "docs/SPEC.md").read_text()
    assert len(docpages.quotes("", spec)) == 8


def test_a_source_without_its_words_is_one_line(docs, monkeypatch, capsys):
    def pages():
        docpages.transitions(ROUND.replace(" | A3.2", ""))

    monkeypatch.setattr(docpages, "pages", pages)
    assert docs.main(["--check"]) == 1
    assert re.fullmatch(
        r"TRANSITIONS, line \d+: its comment must say `condition \| rule`\n", capsys.readouterr().err
    )


def test_the_program_runs_from_any_folder(tmp_path):
    command = [sys.executable, interpreter.ROOT / "tools/docs.py", "--check"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


# -- the round -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda i: f"{ROWS[i].before}-{ROWS[i].after}")
def test_a_row_taken_from_the_table_is_gone_from_table_diagram_and_picture(number):
    row = ROWS[number]
    constants = (f"(_{row.before}, _{row.after}, ", row.condition)
    line = next(x for x in ROUND.splitlines() if all(words in x for words in constants))
    less = without(ROUND, line.strip())
    assert docpages.transitions(less) == ROWS[:number] + ROWS[number + 1 :]
    arrow = f"    {row.before} --> {row.after}: {row.event} – "
    table_row = f"| {row.before} | {row.after} | {row.condition} |"
    whole, cut = docpages.round_page(ROUND), docpages.round_page(less)
    assert arrow in whole and arrow not in cut
    assert table_row in whole and table_row not in cut
    assert docpages.round_picture(ROUND).count("marker-end") == len(ROWS)
    assert docpages.round_picture(less).count("marker-end") == len(ROWS) - 1


def test_a_new_row_is_drawn_though_it_has_no_way_of_its_own():
    row = roundgraph.Row("CLOSED", "BETTING", "bets-open", "a & b", "none")
    picture = roundgraph.svg([row], names.PHASES, [])
    assert "M1195 370L1195 194" in picture and "a &amp; b (none)" in picture


def test_a_phase_without_a_place_is_an_error(monkeypatch):
    monkeypatch.setattr(docpages.names, "PHASES", (*names.PHASES, "SOUP"))
    with pytest.raises(docpages.DocsError, match="no place in the picture for SOUP"):
        docpages.round_picture(ROUND)


def test_the_picture_is_well_formed_has_every_phase_and_follows_the_theme():
    picture = docpages.round_picture(ROUND)
    words = {text.text for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")}
    assert words >= {*names.PHASES, *(row.event for row in ROWS)}
    assert "prefers-color-scheme: dark" in picture


def test_the_words_of_the_picture_are_what_the_round_does(monkeypatch):
    monkeypatch.setattr(docpages, "_as_told", lambda *case: "IDLE")
    with pytest.raises(docpages.DocsError, match="_RESUME is not what the round does"):
        docpages.round_picture(ROUND)


def test_tables_are_those_of_the_machine():
    page = docpages.round_page(ROUND)
    for line in (
        "| SHAKING | pulses | pulses | on |  | on |  |  |",
        "| SHAKING, a latch seen open |  |  | on |  | on |  |  |",
        "| BETTING |  |  | on |  | on | on |  |",
        "| PAYOUT, cover put on |  |  |  | on | on |  | on |",
        "| CLOSED | – | CLOSED | VOID |",
        "| PAYOUT | `wrong-phase` | `wrong-phase` | `wrong-phase` | **→ VOID** void | **→ IDLE** paid |  |",
        "| BETTING | `wrong-phase` | **→ FAULT** fault shaken-late | **→ CLOSED** bets-closed |"
        " `wrong-phase` | `wrong-phase` |  |",
        "| FAULT, its cause present | `wrong-phase` | `wrong-phase` | `wrong-phase` | `cause-present` |"
        " `wrong-phase` | `round-open` |",
    ):
        assert line in page


def test_the_outputs_follow_the_interlock(monkeypatch):
    guard = docpages.interlock.guard
    monkeypatch.setattr(docpages.interlock, "guard", lambda *told: guard(*told) & ~names.COVER_BAR)
    assert "| PAYOUT |  |  |  |  | on |  |  |" in docpages.outputs_table()


# -- events, faults, settings --------------------------------------------------------------------------------


def test_every_event_fault_and_reason_is_on_its_page():
    page = docpages.events_page(NAMES)
    for word in (*names.EVENTS, *names.FAULTS[1:], *names.WHYS[1:]):
        assert f"| `{word}` |" in page


def test_an_event_that_does_not_say_when_is_an_error():
    comment = re.search(r"EV_PAID = const\(10\)(.*)", NAMES)
    assert comment is not None
    with pytest.raises(docpages.DocsError, match="EV_PAID: a comment must say when"):
        docpages.events_page(NAMES.replace(comment[1], ""))
    with pytest.raises(docpages.DocsError, match="no number for paid"):
        docpages.event_times(without(NAMES, "EV_PAID ="))


def test_examples_are_what_the_device_says():
    for number in range(len(names.EVENTS)):
        for form in docpages._FORMS.get(number, docpages._PLAIN):
            assert json.loads(docpages.event_line(number, form))["ev"] == names.EVENTS[number]


def test_where_a_fault_is_raised(tmp_path):
    assert docpages.raised_in("opened-in-betting") == ["round.py: Round._follow"]
    assert docpages.raised_in("agitator-stalled") == ["agitator.py: Agitator.watch"]
    assert docpages.raised_in("program-altered") == ["main.py: main"]
    assert docpages.raised_in("journal-failed") == ["app.py: App._failed", "startup.py: report"]
    source = "def a():\n    r.fault(F_SOUP, 1)\n\ndef b():\n    r.persistent(F_SOUP, False)\n    x = F_SOUP\n"
    (tmp_path / "x.py").write_text(source)
    assert docpages.raised_in("soup", tmp_path) == ["x.py: a"]


def test_a_cause_that_lasts_longer_or_shorter_than_the_page_says_is_an_error(monkeypatch):
    monkeypatch.delitem(docpages._LASTING, "dome-opened")
    assert docpages.lasts("dome-opened") == "gone at once"  # without a dome that is off
    words, begin, _ = docpages._LASTING["latch-a-wiring"]
    monkeypatch.setitem(docpages._LASTING, "latch-a-wiring", (words, begin, lambda rig: None))
    with pytest.raises(docpages.DocsError, match="lasts longer"):
        docpages.lasts("latch-a-wiring")
    monkeypatch.setitem(docpages._LASTING, "shaken-late", (words, lambda rig: rig.core.round.fault(5), begin))
    with pytest.raises(docpages.DocsError, match="is not while"):
        docpages.lasts("shaken-late")


def test_every_fault_has_its_words(monkeypatch):
    assert list(faults.FAULTS) == list(names.FAULTS[1:])
    # A dict of its own: what is put back into the shared one would come last there.
    others = {code: words for code, words in faults.FAULTS.items() if code != "shaken-late"}
    monkeypatch.setattr(faults, "FAULTS", others)
    docpages._faults_tables.cache_clear()
    with pytest.raises(docpages.DocsError, match=r"shaken-late: shakerctl/faults\.py has no words for it"):
        docpages.events_page(NAMES)


def test_every_setting_is_on_its_page_with_range_and_default():
    page = docpages.settings_page(SETTINGS)
    for name in settings.FIELDS:
        assert f"| `{name}` |" in page
    assert "| `pulse_ms` | whole number | 100 to 300 ms | 250 |" in page
    assert docpages.regulated() == {"actuation", "front_board", "spoken_announcement", "layouts"}


def test_a_setting_without_its_meaning_is_an_error():
    row = next(line for line in SETTINGS.splitlines() if '("duty"' in line)
    with pytest.raises(docpages.DocsError, match="duty: its comment must say what it means"):
        docpages.settings_page(SETTINGS.replace(row, row.partition("  #")[0]))


# -- figures ------------------------------------------------------------------------------------------------

README = f"# X\n\n{figures.BEGIN}\nold\n{figures.END}\n\nrest\n"
BENCH = {"on": "an interpreter", "figures": [{"what": "a scan", "value": "0 bytes", "limit": 0}]}


def test_figures_are_entered_between_their_marks(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "build/bench.json").write_text(json.dumps(BENCH))
    assert figures.main(tmp_path) == 0
    text = (tmp_path / "README.md").read_text()
    assert "| a scan | 0 bytes | 0 |\n" + figures.END + "\n\nrest\n" in text
    assert "Measured on an interpreter." in text and "old" not in text
    assert figures.main(tmp_path) == 0
    assert (tmp_path / "README.md").read_text() == text


@pytest.mark.parametrize(
    "bench", [None, "", "{}", '{"on": 1, "figures": []}', '{"on": 1, "figures": [{}]}', "[]"]
)
def test_without_figures_the_readme_stays_as_it_is(tmp_path, bench, capsys):
    (tmp_path / "README.md").write_text(README)
    if bench is not None:
        (tmp_path / "build").mkdir()
        (tmp_path / "build/bench.json").write_text(bench)
    assert figures.main(tmp_path) == 1
    assert (tmp_path / "README.md").read_text() == README
    assert capsys.readouterr().err.count("\n") == 1


def test_the_readme_has_a_block_of_figures():
    figures.enter((interpreter.ROOT / "README.md").read_text(), BENCH)


# -- what documents name ----------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    """A small repository."""
    (tmp_path / "Makefile").write_text("test: x\n")
    (tmp_path / "firmware/shaker").mkdir(parents=True)
    (tmp_path / "firmware/shaker/a.py").write_text("X = 1\n\n\nclass A:\n    def b(self):\n        pass\n")
    (tmp_path / "host_tests/scenarios/faults").mkdir(parents=True)
    (tmp_path / "host_tests/scenarios/faults/b.scn").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "`a.py`", "`shaker/a.py`", "`a.py: A`", "`a.py: A.b`", "`a.py: X`", "`faults/b.scn`",
        "[a](../Makefile)", "[a](#one-two)", "[a](https://example.org/x.md)",
        "`make test`", "`settings.json`", "`build/x.json`",
    ],
)  # fmt: skip
def test_what_exists_may_be_named(tree, words):
    (tree / "firmware/x.md").write_text(f"# One, `two`\n\n{words}\n")
    assert references.wrong(tree, ["firmware/x.md"]) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("`c.py`", "names `c.py`, which is not there"),
        ("`a.py: A.c`", "names `a.py: A.c`, which is not there"),
        ("`a.py: b`", "names `a.py: b`, which is not there"),
        ("`faults/c.scn`", "names `faults/c.scn`, which is not there"),
        ("[a](../README)", "link to ../README, which is not there"),
        ("[a](#three)", "link to #three, which is no heading there"),
        ("![a](x.md#three)", "link to x.md#three, which is no heading there"),
        ("`make fly`", "names `make fly`, which is no target"),
        ("`python tools/check.py`", "names `python tools/check.py`: write .venv/bin/python"),
    ],
)
def test_what_does_not_exist_may_not(tree, words, said):
    (tree / "firmware/x.md").write_text(f"# One, `two`\n\n{words}\n")
    assert references.wrong(tree, ["firmware/x.md"]) == [f"firmware/x.md: {said}"]


def test_a_function_that_went_away_is_seen(tree):
    (tree / "firmware/x.md").write_text("`a.py: A.b`\n")
    assert references.wrong(tree, ["firmware/x.md"]) == []
    path = tree / "firmware/shaker/a.py"
    path.write_text(path.read_text().replace("def b", "def c"))
    assert len(references.wrong(tree, ["firmware/x.md"])) == 1


@pytest.mark.parametrize(
    ("page", "folder", "named"),
    [
        ("firmware/README.md", "firmware/shaker", "`{stem}`"),
        ("tools/README.md", "tools/shakerctl", "(shakerctl/{stem}.py)"),
    ],
)
def test_the_page_of_a_folder_says_what_each_of_its_modules_owns(page, folder, named):
    rows = [line for line in (interpreter.ROOT / page).read_text().splitlines() if line.startswith("|")]
    for path in (interpreter.ROOT / folder).glob("*.py"):
        if path.stem != "__init__":
            assert sum(named.format(stem=path.stem) in row for row in rows) == 1, path


def test_every_row_of_the_table_has_its_constant():
    """The names after TRANSITIONS are as many as its rows: what the diagram prints is what the round uses."""
    tree = ast.parse(ROUND)
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    assert any(isinstance(target, ast.Tuple) and len(target.elts) == len(ROWS) for target in targets)
