"""The whole firmware at awkward instants: flash that is slow or refuses, a clock that stands, restarts.

Each case plays to a phase, brings the trouble, and needs what SPEC says of it. Runs on CPython and
MicroPython: PROGRAM [NAME ...]; prints a line for each case.
"""

import sys

from croupier import Game
from flash import PowerCut
from hostile import HEAD
from shaker import names, record
from shaker.events import Queue
from shaker.journal import Journal
from shaker.state import State

CASES = {}


def case(options=None, prepare=None, watch=False):
    """Register a script under its name; watch: check the invariants, too."""

    def register(script):
        CASES[script.__name__] = (script, options, prepare, watch)
        return script

    return register


def to(game, phase):
    """Play as the croupier until `phase`."""
    while not (game.up() and game.value("phase") == phase):
        yield from game.step((1, 4, 6))


def said(game, name):
    """Return the events of that name which the host has."""
    return [event for event in game.host.events if event["ev"] == name]


def restart(game, service=None):
    """Take the power away; service(files) meanwhile; power on, and wait until contacts have settled."""
    game.world.power_off()
    yield PowerCut()
    if service:
        game.table.storage.service(service)
    game.world.power_on()
    yield (game.up, 6000)
    yield 1500


def write(name, text):
    """Return a service that writes a file."""

    def act(files):
        with files.open(name, "wb") as f:
            f.write(text.encode())

    return act


def fill_tail(game):
    """Press a key that means nothing until the next event goes to a segment, which may erase."""
    journal = game.table.running().journal
    while journal._tail_n != journal._capacity:
        yield from game.press("lever", 60)


def late_erase(game, ms):
    """Let the next erase take `ms`."""

    def once(_):
        game.chip.on_stall = None
        game.world.line.stall(ms)

    game.chip.on_stall = once


# -- flash ------------------------------------------------------------------------------------------------


@case()
def outputs_wait_for_a_journal_that_fails_and_bolts_are_driven_whole_afterwards(game):
    for key, held, phase, bolt in (
        ("bell", 60, "BETTING", "cover_lock"),
        ("void", 60, "PAYOUT", "cover_bar"),
        ("paid", 1000, "PAYOUT", "cover_bar"),
    ):
        yield from to(game, phase)
        yield 3000
        game.need(game.world.bolt(bolt) == 1000, bolt + " is not out")
        for cut in (True, False):
            game.chip.read_only = True
            moved = []
            game.table.after_scan = lambda bolt=bolt, moved=moved: moved.append(
                game.world.output(bolt) == "off" or game.world.bolt(bolt) != 1000
            )
            yield from game.press(key, held)
            yield 900
            game.table.after_scan = None
            game.need(len(moved) > 150 and not any(moved), key + " acts before it is durable")
            game.chip.read_only = False
            if cut:  # the state is the old one, and so are the bolts
                yield from restart(game)
                game.need(game.value("phase") == phase, "the state did not come back")
        yield 3000
        game.need(said(game, "fault")[-1]["code"] == "journal-failed", "no fault")
        game.need(game.world.output(bolt) == "off", "it never acts")
        game.need(game.world.bolt(bolt) == 0, "the bolt was not driven the whole way")
        yield from game.turn_service()
        yield 300


@case()
def a_first_write_that_takes_long_makes_no_fault(game):
    for phase in ("BETTING", "CLOSED", "PAYOUT"):
        yield from to(game, phase)
        yield from fill_tail(game)
        yield 500
        faults = len(said(game, "fault"))
        late_erase(game, 1200)
        yield from restart(game)
        game.need(game.chip.on_stall is None, "nothing was erased")
        game.need(game.value("phase") == phase, "%s became %s" % (phase, game.value("phase")))
        game.need(len(said(game, "fault")) == faults, "a fault")


@case()
def a_key_held_over_a_slow_start_is_stuck(game):
    yield from to(game, "BETTING")
    yield from fill_tail(game)
    game.world.set("bell", "pressed")
    late_erase(game, 1100)
    yield from restart(game)
    game.need(game.value("phase") == "BETTING" and said(game, "key-stuck"), "the bell was pressed")


def unread(files, phase=names.VOID):
    """Leave a journal that the host has not read, so full that only what changes the state is kept."""
    journal = Journal(files, 7)
    journal.open()
    journal.required = True
    queue = Queue()
    state = State()
    state.boot, state.round, state.phase = journal.boot, 100, phase
    state.flags = record.FLAG_BETS if phase == names.VOID else 0
    queue.put(state, 70, 0, names.EV_BOOT)
    while journal.last < 256 * 7 + 5:
        while queue.count < 20:
            queue.put(state, 70, 0, names.EV_TIME, 0, 0, 5)
        journal.append(queue)


@case(
    {"actuation": "lever", "host": "required", "link": "absent"},
    lambda game: game.table.storage.service(unread),
)
def a_shake_that_ends_is_kept_by_a_journal_that_is_full(game):
    yield 500
    yield from game.uncover()
    yield from game.cover()
    yield from game.press("lever", 60)
    yield 500
    game.need(game.value("phase") == "SHAKING", "no shake")
    yield 10500
    game.need(game.value("phase") == "COVERED", "the shake goes on")
    yield from restart(game)
    game.need(game.value("fault") == "none", "the shake was still on")


@case()
def nothing_is_written_between_pulses_whatever_is_due(game):
    yield from to(game, "COVERED")
    app = game.table.running()
    yield (lambda: app.device.uptime_ms() >= 59200, 70000)
    game.need(not app._alive, "too late to see it")
    writes = []

    def look():
        if app.core.agitator.pulsing:
            writes.append(game.chip.programs + game.chip.erases)

    game.table.after_scan = look
    yield from game.press("start", 60)
    yield 2000
    game.table.after_scan = None
    game.need(len(writes) > 250 and app._alive, "the mark of a minute was not due in the pulses")
    game.need(min(writes) == max(writes), "flash was written between pulses")


@case()
def what_waits_is_recorded_by_a_stop(game):
    yield 1000
    app = game.table.running()
    app.device.emit(names.EV_REFUSED, 0, 7)
    app.stop()
    yield from restart(game)
    told = said(game, "refused")[-1:] + said(game, "boot")[-1:]
    game.need([event.get("why", event.get("clean")) for event in told] == ["not-covered", True], str(told))


# -- exceptions -------------------------------------------------------------------------------------------


def _broken(now):
    raise RuntimeError("broken")


@case()
def the_alarm_goes_on_while_a_broken_program_waits_to_run_again(game):
    yield 1000
    for seconds in (0, 4, 8):
        boots = game.world.boots
        game.table.running()._turn = _broken
        yield (lambda boots=boots: game.world.boots == boots + 1, 6000)
        yield 100
        silent = 0
        waited = 0
        while not game.up():
            silent += game.world.output("alarm") == "off"
            waited += 1
            yield 10
        game.need(seconds * 100 <= waited < seconds * 100 + 100, "it waited %d ms" % (10 * waited))
        game.need(silent * 10 <= 200, "no alarm for %d ms" % (10 * silent))
        yield 1000
        game.need(game.value("alarm") == "on" and game.value("fault") == "internal-error", "no fault")


# -- settings ---------------------------------------------------------------------------------------------


@case()
def settings_that_were_spoiled_are_replaced_in_any_phase(game):
    for phase in ("IDLE", "PAYOUT"):
        yield from to(game, phase)
        yield 1000
        yield from restart(game, write("settings.json", '{"pulse_ms":999}'))
        game.need(game.value("fault") == "settings-invalid", "no fault")
        game.need(not game.table.running().may_be_serviced(), "without the key")
        game.world.set("service", "on")
        yield 300
        game.need(game.table.running().may_be_serviced(), "no technician may come")
        game.world.set("service", "off")
        yield from restart(game, write("settings.new", HEAD + "}"))
        yield from game.turn_service()
        yield 300
        game.need(game.value("fault") == "none", "it cannot be cleared")
        game.need(game.value("phase") == phase, "it went to " + game.value("phase"))


@case()
def settings_that_are_refused_are_told_by_the_name_that_is_wrong(game):
    yield 1000

    def both(files):
        write("settings.json", HEAD + ',"layouts":2}')(files)
        write("settings.new", HEAD + ',"duty":10}')(files)

    yield from restart(game, both)
    told = [(event["adopted"], event.get("field")) for event in said(game, "settings")[-2:]]
    game.need(told == [(True, None), (False, "duty")], "not both: %s" % told)
    for wrong, field in (
        ('{"colour":1}', "colour"),
        ('{"spoken_announcements":true}', "spoken_announcemen"),  # as much of it as a record holds
        ("nonsense", None),
    ):
        yield from restart(game, write("settings.new", wrong))
        told = said(game, "settings")[-1]
        game.need((told["adopted"], told["field"]) == (False, field), "%s: %s" % (wrong, told))


# -- clock ------------------------------------------------------------------------------------------------


@case()
def a_clock_that_stands_still_is_a_fault_and_scans_go_on(game):
    for phase in ("IDLE", "SHAKING"):
        yield from to(game, phase)
        yield 650
        world = game.world
        boots = world.boots
        frozen = world.ticks_ms()
        plain = type(world).ticks_ms
        scans = []
        fed = []
        game.table.after_scan = lambda scans=scans, world=world: scans.append(world.now)
        game.table.running()._feed = lambda fed=fed, world=world: fed.append(world.now)
        type(world).ticks_ms = lambda self, frozen=frozen: frozen
        yield 300
        type(world).ticks_ms = plain
        game.table.after_scan = None
        apart = [scans[i + 1] - scans[i] for i in range(len(scans) - 1)]
        game.need(max(apart) == 5, "scans are late")
        game.need(len(fed) <= 1, "a clock that stands feeds the watchdog")
        fed.clear()
        yield 100
        game.need(len(fed) == 20, "a clock that goes feeds it in each scan")
        game.need(game.value("fault") == "clock-stalled", "no fault")
        game.need(not world.outputs & names.DRIVE and world.boots == boots, "driven, or restarted")
        yield 500
        yield from game.turn_service()
        yield 1000


@case()
def a_time_before_the_start_is_no_time(game):
    yield 5000
    game.host.command("time", at=1)
    yield 61000  # the mark of the 60th second has no time of its own
    game.need(game.host.last_reply == "ok" and game.value("fault") == "none", "a fault")
    game.need(1 <= said(game, "time")[-1]["at"] < 10, "another time")


# -- restarts ---------------------------------------------------------------------------------------------


@case()
def a_bolt_that_a_storm_stopped_half_way_is_driven_when_it_is_over(game):
    yield from to(game, "CLOSED")
    yield 61000
    for latch in ("latch_a", "latch_b"):
        game.world.set(latch, "open")
    game.world.set("cover", "off")
    yield (lambda: game.value("phase") == "PAYOUT", 500)
    yield 20
    for _ in range(6):
        game.world.power_off()
        yield PowerCut()
        game.world.power_on()
        yield 110
    yield 3000
    game.need(game.value("fault") == "restart-storm", "no storm")
    game.need(0 < game.world.bolt("cover_bar") < 1000, "it was driven")
    yield from game.turn_service()
    yield 1000
    game.need(game.value("phase") == "PAYOUT" and game.world.bolt("cover_bar") == 1000, "the bar is not out")


@case({"bolt_ms": "2000"}, watch=True)
def bolts_are_driven_a_fifth_of_a_minute_at_most(game):
    yield 1000
    moved = 0
    before = ""
    for i in range(300):
        game.world.set("service", "off" if i // 6 & 1 else "on")
        yield 400
        moved += game.value("dome_lock") != before
        before = game.value("dome_lock")
    game.need(moved >= 9, "the bolt moved %d times in 120 s only" % moved)


@case()
def a_restart_that_was_asked_for_waits_for_the_end_of_a_round(game):
    yield from game.uncover()
    game.world.set("cover", "on")
    game.world.set("latch_a", "closed")
    yield 500
    boots = game.world.boots
    game.host.command("reboot")
    game.world.set("latch_b", "closed")
    yield 50
    game.need(game.host.last_reply == "ok", "refused")
    yield from game.press("start", 60)
    yield from to(game, "PAYOUT")
    game.need(game.world.boots == boots and not said(game, "fault"), "the round was cut off")
    yield from to(game, "IDLE")
    yield 2000
    game.need(game.world.boots == boots + 1 and said(game, "boot")[-1]["clean"], "no restart")


def main(program, *wanted):
    """Play the cases (all by default); return the exit status."""
    for name in wanted or sorted(CASES):
        script, options, prepare, watch = CASES[name]
        try:
            game = Game(program, script, options, prepare, watch)
            game.play()
        except Exception as error:
            print(name)
            sys.print_exception(error)
            return 1
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
