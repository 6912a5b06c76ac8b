"""What a start has to tell: one `boot` event, the settings taken in or refused, and the faults it found.

Queues and raises only; nothing is written and no output moves here. Source: SPEC sections 6, 7 and 8.
"""

from micropython import const

from shaker import settings as config
from shaker.names import (
    EV_BOOT,
    EV_SETTINGS,
    F_JOURNAL_FAILED,
    F_RESTART_STORM,
    F_SETTINGS_INVALID,
)
from shaker.version import VERSION

STORM_BOOTS = const(5)  # short ones running


def report(core, queue, journal, adoption, cause):
    """Queue the events of this start, and have the core raise its faults once the phase is judged.

    adoption: settings.Adoption; cause: why the chip started, index into names.CAUSES.
    """
    the_round = core.round
    settings = core.settings
    the_round.emit(EV_BOOT, cause, journal.clean | settings.authorised << 1)
    queue.text(VERSION.encode())
    if adoption.changed:
        the_round.emit(EV_SETTINGS, 1, 0, settings.options_word(), settings.authorisation_crc())
    refused = adoption.refused_field
    if refused is not None:
        the_round.emit(EV_SETTINGS, 0, config.field_index(refused))
        queue.text(refused.encode())
    if not journal.ok:
        the_round.journal_bad = True
        core.fault_at_boot(F_JOURNAL_FAILED)
    if adoption.fault:
        the_round.settings_bad = True
        core.fault_at_boot(F_SETTINGS_INVALID)
    storm = journal.short_boots >= STORM_BOOTS
    if storm:
        core.fault_at_boot(F_RESTART_STORM)
    core.bolts_stay = storm or not journal.ok
