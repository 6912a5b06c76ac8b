"""Article 8's three working days in Macau's calendar."""

import json
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaker import settings
from shakerctl import workdays
from shakerctl.workdays import RecordError, check, earliest_adoption

# requested, earliest adoption; counted on a calendar of Macau's public services.
EARLIEST = [
    ("2026-03-02", "2026-03-05"),  # Monday to Thursday
    ("2026-03-03", "2026-03-06"),
    ("2026-03-04", "2026-03-09"),  # over a weekend
    ("2026-03-06", "2026-03-11"),
    ("2026-03-07", "2026-03-11"),  # a Saturday, a Sunday: the count begins on Monday
    ("2026-03-08", "2026-03-11"),
    ("2026-02-12", "2026-02-23"),  # Chinese New Year 2026: 16 (afternoon) to 19 February off
    ("2026-02-13", "2026-02-24"),
    ("2026-02-17", "2026-02-24"),  # requested on the day itself
    ("2025-01-27", "2025-02-05"),  # Chinese New Year 2025: 28 (afternoon) to 31 January off
    ("2026-04-02", "2026-04-10"),  # Good Friday, Easter and Cheng Ming with their compensatory days
    ("2026-09-30", "2026-10-07"),  # the National Day and the day after
    ("2026-12-18", "2026-12-29"),  # the SAR's day, winter solstice, Christmas
    ("2026-12-30", "2027-01-06"),  # over the end of the year
]


@pytest.mark.parametrize(("requested", "earliest"), EARLIEST)
def test_the_earliest_adoption(requested, earliest):
    assert earliest_adoption(date.fromisoformat(requested)) == date.fromisoformat(earliest)


@given(st.dates(date(2020, 1, 1), date(2034, 12, 31)))
def test_exactly_three_working_days_come_after_the_request(requested):
    earliest = earliest_adoption(requested)
    days = [requested + timedelta(days=n + 1) for n in range((earliest - requested).days)]
    assert sum(map(workdays.is_working_day, days)) == 3 and workdays.is_working_day(earliest)


def record(**change):
    return {
        "ref": "R1",
        "requested": "2026-03-02",
        "granted": "2026-03-04",
        "adopted": "2026-03-05",
        **change,
    }


def test_a_good_record_passes_here_and_on_the_device():
    for good in (record(), record(adopted="2026-03-08"), record(granted="2026-03-05")):
        check(good)
        assert settings.parse(json.dumps({"authorisation": good})).authorised


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"adopted": "2026-03-04"}, "adopted", "three working days later is 2026-03-05"),
        ({"granted": "2026-03-06"}, "adopted", "before the authorisation of 2026-03-06"),
        ({"granted": "2026-03-01"}, "granted", "before the request"),
        ({"requested": "2026-13-02"}, "requested", "no date"),
        ({"requested": "20260302"}, "requested", "no date"),
        ({"requested": "2026-W10-1"}, "requested", "no date"),
        ({"requested": 20260302}, "requested", "no date"),
        ({"requested": None}, "requested", "no date"),
        ({"requested": "2004-05-12"}, "requested", "outside"),
        ({"adopted": "2100-01-01"}, "adopted", "outside"),
        ({"ref": ""}, "ref", "1 to 40"),
        ({"ref": "x" * 41}, "ref", "1 to 40"),
        ({"ref": "processo n.º 1"}, "ref", "ASCII"),
        ({"ref": 'a"b'}, "ref", "quotation"),
        ({"ref": "a\\b"}, "ref", "backslash"),
        ({"ref": "a\nb"}, "ref", "printable"),
        ({"ref": 7}, "ref", "1 to 40"),
        ({"signed": "x"}, "signed", "no such field"),
    ],
)
def test_what_must_not_be_provisioned_says_why(change, field, words):
    with pytest.raises(RecordError, match=words) as caught:
        check(record(**change))
    assert caught.value.field == field and str(caught.value).startswith("authorisation: ")


@pytest.mark.parametrize("field", workdays.FIELDS)
def test_a_missing_field_is_named(field):
    whole = record()
    del whole[field]
    with pytest.raises(RecordError, match="missing") as caught:
        check(whole)
    assert caught.value.field == field


def test_the_holidays_in_between_are_named():
    with pytest.raises(RecordError, match=r"2026-02-24 \(off: .*2026-02-17 Chinese New Year's Day") as caught:
        check(record(requested="2026-02-13", granted="2026-02-20", adopted="2026-02-23"))
    assert "2026-02-21" not in str(caught.value)  # weekends are left out


def test_nothing_is_adopted_before_its_day():
    check(record(), today=date(2026, 3, 5))
    with pytest.raises(RecordError, match="today is 2026-03-04"):
        check(record(), today=date(2026, 3, 4))
