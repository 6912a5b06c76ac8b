"""Article 8: three working days between the request for an authorisation and the date of its adoption.

Working days are those of the inspectorate: Monday to Friday without the public holidays and the Macau
government's own, compensatory days included (the calendar's package spreads them over three categories).
A day whose afternoon is off counts as off: of two readings of the calendar the later date satisfies both.
"""

import re
from collections.abc import Mapping
from datetime import date, timedelta

import holidays

WORKING_DAYS = 3
FIRST = date(2004, 5, 13)  # Despacho 59/2004 is in force from the day after its publication
LAST_YEAR = 2099
FIELDS = ("ref", "requested", "granted", "adopted")

_CALENDAR = holidays.country_holidays("MO", categories=("public", "government", "optional"), language="en_US")


class RecordError(ValueError):
    """An authorisation record that must not be provisioned: `field` and, in words, why."""

    def __init__(self, field: str, reason: str):
        super().__init__(f"authorisation: {field}: {reason}")
        self.field = field
        self.reason = reason


def is_working_day(day: date) -> bool:
    """Tell whether the inspectorate works on `day`."""
    return day.weekday() < 5 and day not in _CALENDAR


def earliest_adoption(requested: date) -> date:
    """Return the first working day by which three working days have come after `requested`."""
    day = requested
    for _ in range(WORKING_DAYS):
        day += timedelta(days=1)
        while not is_working_day(day):
            day += timedelta(days=1)
    return day


def days_off(start: date, end: date) -> list[str]:
    """Return the holidays from Monday to Friday after `start` up to `end`, as "2026-05-01 Labor Day"."""
    days = [start + timedelta(days=n + 1) for n in range((end - start).days)]
    return [f"{day} {_CALENDAR[day]}" for day in days if day.weekday() < 5 and day in _CALENDAR]


def _date(record: Mapping[str, object], field: str) -> date:
    value = record[field]
    try:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            raise ValueError
        day = date.fromisoformat(value)
    except ValueError:
        raise RecordError(field, f"{value!r} is no date of the form YYYY-MM-DD") from None
    if day < FIRST or day.year > LAST_YEAR:
        raise RecordError(field, f"{value} lies outside {FIRST} to {LAST_YEAR}-12-31")
    return day


def check(record: Mapping[str, object], today: date | None = None) -> None:
    """Raise RecordError unless `record` (ref, requested, granted, adopted) satisfies Article 8.

    With `today` it must also be time: nothing is adopted before its date.
    """
    for field in record:
        if field not in FIELDS:
            raise RecordError(str(field), f"no such field; a record has {', '.join(FIELDS)}")
    for field in FIELDS:
        if field not in record:
            raise RecordError(field, "missing")
    ref = record["ref"]
    if not isinstance(ref, str) or not 1 <= len(ref) <= 40 or not ref.isascii() or not ref.isprintable():
        raise RecordError("ref", "1 to 40 printable ASCII characters")
    if '"' in ref or "\\" in ref:
        raise RecordError("ref", "no quotation mark and no backslash")
    requested, granted, adopted = (_date(record, field) for field in FIELDS[1:])
    if granted < requested:
        raise RecordError("granted", f"{granted} lies before the request of {requested}")
    if adopted < granted:
        raise RecordError("adopted", f"{adopted} lies before the authorisation of {granted}")
    earliest = earliest_adoption(requested)
    if adopted < earliest:
        off = days_off(requested, earliest)
        because = f" (off: {'; '.join(off)})" if off else ""
        rule = f"requested on {requested}, three working days later is {earliest}{because}"
        raise RecordError("adopted", f"{adopted} is too early: {rule}")
    if today is not None and today < adopted:
        raise RecordError("adopted", f"today is {today}; do not put it into force before {adopted}")
