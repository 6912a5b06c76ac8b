"""Settings: every field's range, files refused whole, authorised changes, stores cut at any operation."""

import contextlib
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interpreter
from flash import Flash
from shaker import settings as config
from shaker.settings import FIELDS, SettingsError, adopt, parse
from storage import Storage

KEY = "00112233445566778899aabbccddeeff" * 2
RECORD = {"ref": "DICJ-1/26", "requested": "2026-03-02", "granted": "2026-03-05", "adopted": "2026-03-06"}
NEWER = {"ref": "DICJ-2/26", "requested": "2026-05-04", "granted": "2026-05-06", "adopted": "2026-05-08"}
DEFAULT_WORD = parse("{}").options_word()


def text(**values):
    return json.dumps(values)


def refused(words):
    with pytest.raises(SettingsError) as caught:
        parse(words)
    return caught.value


# -- Fields -------------------------------------------------------------------------------------------

DEFAULTS = {
    "actuation": "electronic",
    "front_board": True,
    "spoken_announcement": True,
    "layouts": 1,
    "layout_lamps": True,
    "pulse_ms": 250,
    "gap_ms": 350,
    "duty": 70,
    "settle_ms": 700,
    "bolt_ms": 600,
    "lever_window_ms": 10000,
    "host": "optional",
    "motion": True,
    "table": "",
    "authorisation": None,
}

RANGES = {
    "layouts": (1, 4),
    "pulse_ms": (100, 300),
    "gap_ms": (200, 1000),
    "duty": (20, 100),
    "settle_ms": (300, 3000),
    "bolt_ms": (200, 2000),
    "lever_window_ms": (1000, 60000),
}


def test_an_empty_object_means_the_defaults():
    settings = parse("{}")
    assert dict(settings.public()) == DEFAULTS
    assert list(settings.public()) == [name for name in FIELDS if name != "key"]
    assert settings.key is None
    assert not settings.authorised and not settings.lever and not settings.host_required


@pytest.mark.parametrize("name", RANGES)
def test_a_number_is_taken_to_its_ends_and_not_beyond(name):
    least, most = RANGES[name]
    for value in (least, most):
        assert getattr(parse(text(**{name: value})), name) == value
    for value in (least - 1, most + 1, -least, True, False, None, str(least), [least], {"a": 1}):
        assert refused(text(**{name: value})).field == name
    for words in (f"{least}.0", f"{least}e0", f"0{least}", f"+{least}", f"{least}_0", "1" * 30, "nan", ""):
        assert refused('{"%s":%s}' % (name, words)).field == name


@pytest.mark.parametrize("name", ["front_board", "spoken_announcement", "layout_lamps", "motion"])
def test_a_switch_is_true_or_false_and_nothing_like_it(name):
    assert getattr(parse(text(**{name: False})), name) is False
    for value in (0, 1, None, "true", {}):
        assert refused(text(**{name: value})).field == name


@pytest.mark.parametrize(
    ("name", "words"), [("actuation", ["electronic", "lever"]), ("host", ["optional", "required"])]
)
def test_a_choice_is_one_of_its_words(name, words):
    for word in words:
        assert getattr(parse(text(**{name: word})), name) == word
    for value in ("", "Lever", "other", True, 0, None):
        assert refused(text(**{name: value})).field == name


def test_what_follows_from_a_choice():
    settings = parse(text(actuation="lever", host="required"))
    assert settings.lever and settings.host_required


def test_the_table_has_a_short_plain_name():
    assert parse(text(table="Pit-3_t.12")).table == "Pit-3_t.12"
    for value in ("a" * 17, "a b", 'a"b', "a/b", "é", 7, None):
        assert refused(text(table=value)).field == "table"


def test_the_key_is_64_hex_digits_and_never_shown():
    settings = parse(text(key=KEY.upper()))
    assert settings.key == bytes.fromhex(KEY)
    assert "key" not in settings.public() and KEY not in str(settings.public()).lower()
    for value in (KEY[1:], KEY + "0", "g" * 64, " " * 64, "0" * 31 + "x" + "0" * 32, 5, True):
        error = refused(text(key=value))
        assert error.field == "key" and str(value) not in str(error)


def test_a_record_must_be_whole_and_its_dates_in_order():
    settings = parse(text(authorisation=RECORD))
    assert settings.authorised and settings.authorisation == RECORD
    for change in (
        {"ref": ""},
        {"ref": "x" * 41},
        {"ref": 1},
        {"requested": "2026-3-02"},
        {"requested": "2026-02-29"},
        {"requested": "2100-01-01"},
        {"requested": "2003-01-01"},
        {"granted": "2026-13-01"},
        {"granted": "2026-04-31"},
        {"granted": "2026-00-10"},
        {"granted": "20260-4-01"},
        {"granted": "2026-04- 1"},
        {"granted": "2026-03-07"},  # after adoption
        {"adopted": "2026-03-02", "granted": "2026-03-02"},  # the day of the request
        {"adopted": 20260306},
        {"other": "x"},
    ):
        assert refused(text(authorisation={**RECORD, **change})).field == "authorisation", change
    for name in RECORD:
        rest = {key: value for key, value in RECORD.items() if key != name}
        assert refused(text(authorisation=rest)).field == "authorisation"
    for value in ("x", 1, True, [RECORD]):
        assert refused(text(authorisation=value)).field == "authorisation"
    assert parse(text(authorisation={**RECORD, "requested": "2024-02-29"})).authorised
    assert parse(text(authorisation={**RECORD, "granted": RECORD["adopted"]})).authorised


def test_the_first_bad_field_is_named_with_its_reason():
    error = refused('{"duty": 70, "colour": 1, "layouts": 9}')
    assert (error.field, error.reason, str(error)) == ("colour", "no such setting", "colour: no such setting")
    assert "1-4" in refused(text(layouts=9)).reason


def test_the_index_of_a_field():
    assert config.field_index("actuation") == 0 and config.field_index("layouts") == 3
    assert config.field_index("") == config.NO_FIELD == 255
    assert config.field_index("colour") == config.NO_SUCH_FIELD == 254


def test_options_word_tells_all_32_choices_apart_and_is_never_0():
    words = set()
    for actuation in ("electronic", "lever"):
        for front_board in (True, False):
            for spoken in (True, False):
                for layouts in (1, 2, 3, 4):
                    chosen = text(
                        actuation=actuation,
                        front_board=front_board,
                        spoken_announcement=spoken,
                        layouts=layouts,
                    )
                    words.add(parse(chosen).options_word())
    assert len(words) == 32 and 0 not in words and max(words) < 1 << 30
    assert parse(text(pulse_ms=100, layout_lamps=False)).options_word() == DEFAULT_WORD


# -- Text that is no settings file ---------------------------------------------------------------------

NO_JSON = [
    "",
    " ",
    "null",
    "[]",
    "7",
    '"duty"',
    "{",
    "{]",
    "{}}",
    "{} x",
    "{,}",
    "{duty:70}",
    "{'duty':70}",
    '{"duty" 70}',
    '{"duty":70',
    '{"duty":70,}',
    '{"duty":70 "gap_ms":350}',
    '{"duty":70,"duty":70}',
    '{"duty":tru}',
    '{"duty":True}',
    '{"table":"a}',
    '{"table":"a\\u0041"}',
    '{"table":"a\nb"}',
    '{"table":"a\tb"}',
    '{"tab\\u006ce":"a"}',
    '{"authorisation":{"ref":{}}}',
    '{"authorisation":{"ref":"a","ref":"a"}}',
    "\ufeff{}",
    "{}\0",
    '{"duty":- 1}',
    '{"duty":7 0}',
    '{"duty":70}{"duty":70}',
]


@pytest.mark.parametrize("words", NO_JSON)
def test_text_that_is_no_plain_object_is_refused(words):
    assert refused(words).field in ("", "duty", "table", "authorisation", "tab")


def test_space_between_words_does_not_matter():
    words = ' {\r\n\t"duty" : 71 ,\n"table":\t"a" , "authorisation" : null , "motion" : false } \n'
    assert (parse(words).duty, parse(words).table, parse(words).motion) == (71, "a", False)


VALUES = st.one_of(st.booleans(), st.none(), st.integers(-99999, 99999), st.sampled_from(["lever", "", "x"]))


@given(st.dictionaries(st.sampled_from((*FIELDS, "other")), VALUES), st.sampled_from([None, 1]))
def test_what_json_writes_is_taken_or_refused_by_field(values, indent):
    try:
        settings = parse(json.dumps(values, indent=indent))
    except SettingsError as error:
        assert error.field in values
    else:
        assert all(getattr(settings, name) == value for name, value in values.items() if name != "key")


@given(st.text(alphabet='{}[]":,.-+01eEtrufalsn \n\\dy', max_size=30))
def test_any_text_is_taken_only_if_json_agrees(words):
    try:
        parse(words)
    except SettingsError:
        return
    assert isinstance(json.loads(words), dict)


@given(st.data())
def test_a_stored_file_cut_short_is_refused(data):
    whole = parse(text(key=KEY, authorisation=RECORD, table="t"))._text().decode()
    cut = data.draw(st.integers(0, len(whole) - 3))
    refused(whole[:cut])


# -- Adoption -------------------------------------------------------------------------------------------


class Table:
    """A device's data folder, and what its journal remembers of adoptions."""

    def __init__(self, **values):
        self.storage = Storage(Flash(16))
        self.storage.format()
        files = self.storage.mount()
        assert files is not None
        self.files = files
        self.word = self.auth = 0
        if values:
            self.put("settings.json", text(**values))

    def put(self, name, words):
        with self.files.open(name, "wb") as file:
            file.write(words if isinstance(words, bytes) else words.encode())

    def get(self, name):
        with self.files.open(name, "rb") as file:
            return file.read().decode()

    def offer(self, **values):
        self.put("settings.new", text(**values))

    def restart(self, idle=True):
        """Adopt as at a start, and journal it as the application does."""
        done = adopt(self.files, idle, self.word, self.auth)
        if done.changed:
            self.word = done.settings.options_word()
            self.auth = done.settings.authorisation_crc()
        return done


def assert_unchanged(done, field=None):
    assert (done.changed, done.fault, done.refused_field) == (False, False, field)


def test_no_file_means_the_defaults_and_nothing_to_report():
    done = Table().restart()
    assert_unchanged(done)
    assert dict(done.settings.public()) == DEFAULTS and done.problem is None


def test_a_new_file_is_taken_whole_and_then_in_force():
    table = Table()
    table.offer(duty=50, key=KEY, table="t7")
    done = table.restart()
    assert done.changed and not done.fault and done.refused_field is None
    assert (done.settings.duty, done.settings.table, done.settings.key) == (50, "t7", bytes.fromhex(KEY))
    assert sorted(table.files.listdir()) == ["settings.json"]
    again = table.restart()
    assert_unchanged(again)
    assert again.settings.duty == 50 and again.settings.key == bytes.fromhex(KEY)
    assert json.loads(table.get("settings.json"))["duty"] == 50


def test_a_new_file_waits_until_no_round_is_open():
    table = Table(duty=60)
    table.offer(duty=50)
    done = table.restart(idle=False)
    assert_unchanged(done)
    assert done.settings.duty == 60 and table.files.size("settings.new") > 0
    assert table.restart().settings.duty == 50


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ('{"duty":50,"pulse_ms":301}', "pulse_ms"),
        ('{"duty":50,"colour":1}', "colour"),
        ('{"duty":50', "duty"),
        ("", ""),
        (b"\xff\xfe{}", ""),
        (b"{" + b" " * 3000 + b"}", ""),
    ],
)
def test_a_bad_new_file_changes_nothing_and_is_put_aside(words, field):
    table = Table(duty=60)
    before = table.get("settings.json")
    table.put("settings.new", words)
    done = table.restart()
    assert_unchanged(done, field)
    assert done.problem
    assert done.settings.duty == 60 and table.get("settings.json") == before
    assert sorted(table.files.listdir()) == ["settings.bad", "settings.json"]
    assert_unchanged(table.restart())


def test_a_second_bad_file_replaces_the_first():
    table = Table()
    for words in ("one", "two"):
        table.put("settings.new", words)
        table.restart()
    assert table.get("settings.bad") == "two"


@pytest.mark.parametrize("words", ["", "{", '{"duty":5}', b"\x00\xff", b"{}" + b" " * 2048])
def test_a_bad_file_in_force_is_a_fault_with_the_defaults(words):
    table = Table()
    table.put("settings.json", words)
    done = table.restart()
    assert done.fault and not done.changed and done.refused_field is not None and done.problem
    assert dict(done.settings.public()) == DEFAULTS and done.settings.key is None
    assert table.files.size("settings.json") >= 0  # kept for the technician to see
    table.offer(duty=50)
    done = table.restart()
    assert done.changed and not done.fault and done.settings.duty == 50


def test_the_key_stays_unless_another_is_given_or_it_is_taken_away():
    table = Table(key=KEY)
    table.offer(duty=50)
    assert table.restart().settings.key == bytes.fromhex(KEY)
    table.offer(key="f" * 64)
    assert table.restart().settings.key == b"\xff" * 32
    table.offer(key=None)
    assert table.restart().settings.key is None
    assert table.restart().settings.key is None


# -- Authorisation (A8) ---------------------------------------------------------------------------------


def test_a_table_without_a_record_plays_with_any_options_and_says_so():
    table = Table()
    for values in ({"actuation": "lever"}, {"layouts": 3}, {}):
        table.offer(**values)
        done = table.restart()
        assert done.changed and not done.settings.authorised


def test_the_first_record_authorises():
    table = Table()
    table.offer(actuation="lever", authorisation=RECORD)
    done = table.restart()
    assert done.changed and done.settings.authorised and done.settings.lever
    assert table.restart().settings.authorised and table.auth


@pytest.mark.parametrize(
    "change", [{"actuation": "lever"}, {"front_board": False}, {"spoken_announcement": False}, {"layouts": 2}]
)
def test_each_regulated_option_needs_a_new_record(change):
    table = Table(authorisation=RECORD)
    table.restart()
    for offered in (change, {**change, "authorisation": RECORD}, {**change, "authorisation": None}):
        table.offer(**offered)
        done = table.restart()
        assert_unchanged(done, "authorisation")
        assert done.settings.options_word() == DEFAULT_WORD and done.settings.authorised
    table.offer(**change, authorisation=NEWER)
    done = table.restart()
    assert done.changed and done.settings.authorised and done.settings.options_word() != DEFAULT_WORD


def test_other_settings_change_under_the_same_record():
    table = Table(authorisation=RECORD)
    table.restart()
    for offered in ({"duty": 50}, {"duty": 51, "authorisation": None}, {"duty": 52, "authorisation": RECORD}):
        table.offer(**offered)
        done = table.restart()
        assert done.changed and done.settings.duty == offered["duty"]
        assert done.settings.authorisation == RECORD and table.auth == done.settings.authorisation_crc()


def test_an_older_record_is_not_a_new_one():
    table = Table(authorisation=NEWER)
    table.restart()
    table.offer(layouts=2, authorisation=RECORD)
    assert_unchanged(table.restart(), "authorisation")


def test_options_swapped_behind_the_devices_back_are_a_fault():
    table = Table(authorisation=RECORD)
    table.restart()
    for swapped in ({"layouts": 2}, {"layouts": 2, "authorisation": RECORD}):
        table.put("settings.json", text(**swapped))
        done = table.restart()
        assert done.fault and done.refused_field == "authorisation" and not done.changed
        assert dict(done.settings.public()) == DEFAULTS
    table.put("settings.json", text(layouts=2, authorisation=NEWER))
    done = table.restart()
    assert done.changed and not done.fault and done.settings.layouts == 2


def test_losing_the_file_of_an_authorised_lever_table_is_a_fault():
    table = Table(actuation="lever", authorisation=RECORD)
    table.restart()
    table.files.remove("settings.json")
    assert table.restart().fault
    table.offer(actuation="lever", authorisation=RECORD)
    done = table.restart()
    assert done.changed and not done.fault and done.settings.lever and done.settings.authorised


def test_a_record_cannot_be_shed_to_change_freely():
    table = Table(authorisation=RECORD)
    table.restart()
    table.put("settings.json", "{}")
    done = table.restart()
    assert not done.fault and not done.settings.authorised
    table.offer(duty=50)
    assert_unchanged(table.restart(), "authorisation")
    table.offer(layouts=2)
    assert_unchanged(table.restart(), "authorisation")
    table.offer(duty=50, authorisation=RECORD)
    assert table.restart().changed


def test_a_record_known_only_from_the_file_counts_too():
    for offered in ({"layouts": 2}, {"layouts": 2, "authorisation": RECORD}):
        table = Table(authorisation=RECORD)
        table.offer(**offered)  # both files were there before the first start
        done = adopt(table.files, True, 0, 0)
        assert done.refused_field == "authorisation" and done.settings.layouts == 1


def test_a_record_known_only_from_the_journal_counts_too():
    table = Table(authorisation=RECORD)
    table.restart()
    for offered in ({"layouts": 2}, {"layouts": 2, "authorisation": RECORD}):
        table.put("settings.json", "{")
        table.offer(**offered)
        done = table.restart()
        assert done.fault and done.refused_field == "authorisation" and done.settings.layouts == 1


# -- A file system that fails, a supply that goes -----------------------------------------------------------


def test_a_full_file_system_leaves_everything_as_it_was():
    table = Table(duty=60)
    table.offer(duty=50)
    waiting = table.get("settings.new")

    def full(name, data):
        raise OSError(28)

    store, table.files.write_whole = table.files.write_whole, full
    done = table.restart()
    assert_unchanged(done)
    assert done.settings.duty == 60 and "settings.new" in done.problem
    assert table.get("settings.new") == waiting
    table.files.write_whole = store
    assert table.restart().settings.duty == 50


class Broken:
    """A file system on which every access fails."""

    def _fail(self, *_):
        raise OSError(5)

    open = listdir = rename = remove = _fail

    def size(self, name):
        return -1


def test_a_dead_file_system_is_a_fault_with_the_defaults():
    done = adopt(Broken(), True, DEFAULT_WORD, 0)
    assert done.fault and not done.changed and done.problem
    assert dict(done.settings.public()) == DEFAULTS


CUTS = """
import flash, storage
from power import PowerCut
from shaker.settings import adopt

RECORD = '{"ref":"R","requested":"2026-03-02","granted":"2026-03-05","adopted":"2026-03-06"}'
OLD = '{"duty":60,"table":"old","key":"' + "ab" * 32 + '"}'
NEW = '{"duty":50,"table":"new","actuation":"lever","authorisation":' + RECORD + '}'
BAD = '{"duty":5}'


def play(offered, n, how):
    chip = flash.Flash(16)
    disk = storage.Storage(chip)
    disk.format()
    files = disk.mount()
    files.write_whole("settings.json", OLD)
    files.write_whole("settings.new", offered)
    known = adopt(files, False, 0, 0).settings.options_word()
    before = chip.operations
    chip.cut_at(n, how)
    cut = False
    try:
        adopt(files, True, known, 0)
    except PowerCut:
        cut = True
    chip.disarm()
    chip.power_on()
    done = chip.operations - before
    files = disk.mount()
    half = adopt(files, False, known, 0)  # as the cut left it, the new file waiting
    last = adopt(files, True, known, 0)
    for a in (half, last):
        s = a.settings
        assert not a.fault, (n, how, a.problem)
        found = (s.duty, s.table, s.lever, s.authorised)
        assert found in ((60, "old", False, False), (50, "new", True, True)), n
        assert s.key == b"\\xab" * 32, n
    if offered == NEW:
        assert last.settings.duty == 50 and last.changed, n
    else:
        assert last.settings.duty == 60, n
    left = sorted(name for name in files.listdir() if not name.endswith(".tmp"))
    assert left == (["settings.json"] if offered == NEW else ["settings.bad", "settings.json"]), left
    return cut, done


for offered in (NEW, BAD):
    for how in (flash.BEFORE, flash.TORN, flash.AFTER):
        n = 1
        while play(offered, n, how)[0]:
            n += 1
        print(how, n - 1)
"""


def cuts_on_cpython():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(CUTS, {})
    return said.getvalue()


def test_a_store_cut_at_any_flash_operation_leaves_the_old_or_the_new():
    said = cuts_on_cpython()
    numbers = [int(line.split()[1]) for line in said.splitlines()]
    assert len(numbers) == 6 and min(numbers) >= 1 and max(numbers) >= 3
    assert interpreter.run(CUTS, heap_bytes=8_000_000) == said


# -- Both interpreters -------------------------------------------------------------------------------------

ON_MICROPYTHON = """
import sys, json
from shaker import settings
for words in json.loads(sys.stdin.read()):
    try:
        values = settings.parse(words)
        words = values._text().decode()
        print(json.dumps([str(values.duty), values.options_word(), values.authorisation_crc(), words]))
    except settings.SettingsError as error:
        print(json.dumps([error.field, error.reason]))
"""


def test_micropython_agrees():
    texts = [words for words in NO_JSON if words.isascii()]
    texts += [
        text(**{name: value}) for name, ends in RANGES.items() for value in (ends[0] - 1, *ends, ends[1] + 1)
    ]
    texts += [
        text(key=KEY, authorisation=RECORD, table="t", layouts=4),
        text(actuation="lever"),
        text(duty=True),
    ]
    texts += [text(authorisation={**RECORD, "granted": "2026-02-30"}), text(key="x" * 64), text(duty=10**8)]
    said = [json.loads(line) for line in interpreter.run(ON_MICROPYTHON, json.dumps(texts)).splitlines()]
    here = []
    for words in texts:
        try:
            values = parse(words)
            here.append(
                [str(values.duty), values.options_word(), values.authorisation_crc(), values._text().decode()]
            )
        except SettingsError as error:
            here.append([error.field, error.reason])
    assert said == here
    assert any(re.search("whole number", words[1]) for words in here if isinstance(words[1], str))
