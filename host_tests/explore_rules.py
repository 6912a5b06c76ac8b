"""What SPEC says must hold of the round and its outputs, written from its text alone, for explore.py.

Owns the verdict on one scan: given where the round stood, what happened, what it recorded and what it now
does, `check_records` follows the events one by one through SPEC 3, 6 and 7, `check_duties` asks for what had
to happen, `check_outputs` applies I1 to I7. Never calls interlock.py and never reads round.py's tables.
"""

from shaker import names as n
from shaker.record import FLAG_BETS, FLAG_COVERED_UNPAID, FLAG_DISTURBED, FLAG_SERVICE

BOTH_OPEN = 0x6000  # "seen open" bits of inputs.py
ROUND, REPEAT = 7, 3  # what every state is given before a step: only their changes matter
DICE = (1, 4, 6)
DICE_LAMPS = "big,fish,coin,rooster,red2,blue1,n11"  # counted by hand from Article 5
LAMP_MASK = sum(1 << n.LAMPS.index(lamp) for lamp in DICE_LAMPS.split(","))

# Fields of a state as it is followed: phase, origin, flags, repeat, round, faults, fault, dice.
PH, OR, FL, RE, RD, FS, F1, DI = range(8)

_DISTURBING = (n.F_DOME_OPENED, n.F_AGITATOR_RUNAWAY, n.F_SHAKEN_LATE)
_LOCKED = (n.SHAKING, n.BETTING)
_OPENED = (n.BETTING, n.CLOSED, n.PAYOUT, n.VOID)  # the round has opened bets
_LATCHES = 0x0005
_WIRING = {n.F_LATCH_A_WIRING: n.LATCH_A_INVALID, n.F_LATCH_B_WIRING: n.LATCH_B_INVALID}
_NOTHING = frozenset()
_KEY_BITS = (n.START, n.LEVER, n.BELL, n.VOID_KEY, n.PAID)


class Violation(Exception):
    """A rule that does not hold. `rule` names it; `final` are scenario lines that then fail, at the end of a
    scenario; `whole` are `never` lines that fail, at its start.
    """

    def __init__(self, rule, text, final=(), whole=()):
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = text
        self.final = tuple(final)
        self.whole = tuple(whole)

    def __reduce__(self):  # exceptions are rebuilt from `args` else, and this one comes from another process
        return Violation, (self.rule, self.text, self.final, self.whole)


def phase(number):
    """Return a scenario's word for a phase."""
    return n.PHASES[number]


def need(condition, rule, text, *final, whole=()):
    """Raise Violation unless `condition`."""
    if not condition:
        raise Violation(rule, text, final, whole)


def broken(rule, text, *final, whole=()):
    """Raise Violation."""
    raise Violation(rule, text, final, whole)


def owed(s):
    """Is payout outstanding in state `s`: lifted after the bell, neither paid nor void?"""
    return s[PH] == n.PAYOUT or (s[PH] == n.FAULT and s[OR] == n.PAYOUT)


def resumes(s):
    """Return the phase in which a cleared FAULT goes on (SPEC 3, last row)."""
    if s[OR] == n.PAYOUT:
        return n.PAYOUT
    if s[OR] == n.CLOSED and not s[FL] & FLAG_DISTURBED:
        return n.CLOSED
    return n.VOID if s[FL] & FLAG_BETS else n.IDLE


class Facts:
    """What is known about one scan from outside: see Rig.step for the meaning of each."""

    __slots__ = (
        "bad",
        "begun",
        "board",
        "boot",
        "causes",
        "cleared",
        "command",
        "driving",
        "fired",
        "hold",
        "ignored",
        "judging",
        "levels",
        "lever",
        "moving",
        "pressed",
        "pulses",
        "room",
        "seen",
        "stuck",
        "told",
        "turned_on",
        "turning_off",
        "turning_on",
    )


def cause_present(s, facts, levels):
    """Is the cause of any fault still there (SPEC 3: then FAULT may not be left)?"""
    if levels & (n.LATCH_A_INVALID | n.LATCH_B_INVALID) or facts.bad or facts.moving:
        return True
    if not levels & n.DOME:
        return s[OR] != n.IDLE or bool(s[FS] >> (n.F_DOME_OPENED - 1) & 1)
    return False


def fault_expected(code, s, facts, levels):
    """May fault `code` be raised in state `s` now (SPEC 3, 5, 6, 7)?"""
    if code in facts.causes:
        return True
    covering = levels & n.COVERING == n.COVERING
    if code == n.F_DOME_OPENED:
        if levels & n.DOME or s[PH] == n.IDLE:
            return False
        return s[PH] != n.FAULT or s[OR] != n.IDLE or bool(facts.told & n.DOME_LOCK)
    if code == n.F_OPENED_IN_SHAKE:
        return s[PH] == n.SHAKING and not covering
    if code == n.F_OPENED_IN_BETTING:
        return s[PH] == n.BETTING and not covering
    if code == n.F_SHAKEN_LATE:
        return facts.lever and bool(facts.pressed & n.LEVER) and s[PH] in (n.BETTING, n.CLOSED)
    if facts.judging and code == n.F_POWER_LOST_IN_SHAKE:
        return s[PH] == n.SHAKING
    if facts.judging and code == n.F_OPENED_WHILE_OFF:
        return s[PH] == n.BETTING and not covering
    return False


def _expect(s, record, rule, **changes):
    """Check that `record` is `s` with `changes` (names of the fields in lower case) and nothing else."""
    want = list(s)
    for name, value in changes.items():
        want[{"ph": PH, "or_": OR, "fl": FL, "re": RE, "rd": RD, "fs": FS, "f1": F1, "di": DI}[name]] = value
    got = record[:8]
    if got != tuple(want):
        lines = [] if got[PH] == want[PH] else ["expect phase=" + phase(want[PH])]
        lines += [] if got[RD] == want[RD] else [f"expect round={want[RD] - ROUND + 1}"]
        raise Violation(rule, f"{n.EVENTS[record[8]]} left {got}, SPEC wants {tuple(want)}", lines)


def check_records(s, records, facts, levels, done=False):
    """Follow `records` from state `s` with settled inputs `levels`; return the state after the last."""
    shaken = done
    for record in records:
        ev, a, b, x = record[8:12]
        name = n.EVENTS[ev]
        ph = s[PH]
        off = not levels & n.COVER
        if ev == n.EV_REFUSED:
            if a == n.WHAT_LEVER and b == n.WHY_TOO_FEW:
                need(
                    facts.lever and facts.fired == "window" and ph == n.SHAKING,
                    "SPEC 3",
                    "too-few without cause",
                    "expect phase=" + phase(ph),
                )
                _expect(s, record, "SPEC 3", ph=n.COVERED)
                facts.seen = BOTH_OPEN  # nothing was shaken, so the covering is as good as it was
            else:
                _expect(s, record, "refusals change nothing")
                need(b != n.OK, "refusals", f"{n.WHATS[a]} refused without a reason")
                by_key = a < 5 and facts.pressed & _KEY_BITS[a]
                by_hold = a == n.WHAT_PAID and facts.told is not None and levels & n.PAID
                by_service = a == n.WHAT_CLEAR and facts.turning_off
                need(by_key or by_hold or by_service, "refusals", f"{n.WHATS[a]} refused, nobody asked")
        elif ev == n.EV_KEY_STUCK:
            _expect(s, record, "key-stuck changes nothing")
        elif ev == n.EV_COVERED:
            need(ph in (n.IDLE, n.VOID), "SPEC 3", f"covered from {phase(ph)}", "expect phase=" + phase(ph))
            need(
                levels & n.SECURED == n.SECURED,
                "SPEC 3",
                "covered without cover, latches and dome",
                "expect phase=" + phase(ph),
            )
            need(
                ph != n.IDLE or not s[FL] & FLAG_SERVICE,
                "SPEC 3",
                "covered in service mode",
                "expect phase=IDLE",
            )
            _expect(s, record, "SPEC 3", ph=n.COVERED)
        elif ev == n.EV_UNCOVERED:
            need(
                ph == n.COVERED and levels & n.COVERING != n.COVERING,
                "SPEC 3",
                "uncovered without cause",
                "expect phase=" + phase(ph),
            )
            _expect(s, record, "A3.3, bets stand", ph=n.VOID if s[FL] & FLAG_BETS else n.IDLE)
        elif ev == n.EV_SHAKE_START:
            _check_start(s, facts, levels)
            facts.seen = 0
            again = bool(s[FL] & FLAG_BETS)
            _expect(
                s,
                record,
                "round number",
                ph=n.SHAKING,
                fl=s[FL] & ~FLAG_DISTURBED,
                di=(0, 0, 0),
                rd=s[RD] if again else s[RD] + 1,
                re=s[RE] + 1 if again else 0,
            )
        elif ev == n.EV_SHAKE_DONE:
            _expect(s, record, "SPEC 3")
            need(
                ph == n.SHAKING and facts.fired in ("edge", "late", "settled"),
                "I5",
                "shake-done without a shake",
                "no event shake-done",
            )
            need(
                a == 3 and facts.pulses == 3,
                "I5",
                f"shake done after {facts.pulses} pulses",
                "no event shake-done",
            )
            shaken = True
        elif ev == n.EV_BETS_OPEN:
            need(
                shaken and ph == n.SHAKING,
                "I5",
                "bets opened without a completed shake",
                "no event bets-open",
            )
            _expect(s, record, "I5", ph=n.BETTING, fl=s[FL] | FLAG_BETS)
        elif ev == n.EV_BETS_CLOSED:
            need(
                ph == n.BETTING and facts.pressed & n.BELL,
                "A3.1",
                "bets closed without the bell",
                "expect phase=" + phase(ph),
            )
            _expect(s, record, "A3.1", ph=n.CLOSED)
        elif ev == n.EV_LIFTED:
            need(off, "A3.2", "lifted with the cover on", "no event lifted")
            if ph == n.CLOSED:
                _expect(s, record, "A3.2", ph=n.PAYOUT)
            else:
                ok = ph == n.FAULT and s[OR] == n.CLOSED and not s[FL] & FLAG_DISTURBED
                need(ok, "A3.2", f"lifted in {phase(ph)}", "no event lifted")
                _expect(s, record, "A3.2", or_=n.PAYOUT)
        elif ev == n.EV_RESULT:
            need(
                ph == n.PAYOUT and facts.command == "result",
                "A3.2",
                "a result nobody sent",
                "no event result",
            )
            _expect(s, record, "A3.2", di=DICE)
        elif ev == n.EV_VOID:
            asked = facts.command == "void" or facts.pressed & n.VOID_KEY
            need(ph == n.PAYOUT and off and asked, "A3.3", "void without cause", "expect phase=" + phase(ph))
            _expect(s, record, "A3.3", ph=n.VOID, di=(0, 0, 0))
        elif ev == n.EV_PAID:
            asked = facts.command == "paid" or facts.fired == "hold"
            need(
                ph == n.PAYOUT and off and asked,
                "A4, no payout lost",
                "paid without cause",
                "expect phase=" + phase(ph),
            )
            _expect(s, record, "A4", ph=n.IDLE, fl=s[FL] & ~FLAG_BETS)
        elif ev == n.EV_ABANDONED:
            asked = facts.command == "abandon" or (facts.fired == "hold" and levels & n.SERVICE)
            need(ph == n.VOID and asked, "house rule", "abandoned without cause", "expect phase=" + phase(ph))
            _expect(s, record, "house rule", ph=n.IDLE, fl=s[FL] & ~FLAG_BETS)
        elif ev == n.EV_COVERED_UNPAID:
            need(owed(s) and not off, "A4", "covered-unpaid without cause", "no event covered-unpaid")
            _expect(s, record, "A4", fl=s[FL] | FLAG_COVERED_UNPAID)
        elif ev == n.EV_UNCOVERED_UNPAID:
            need(owed(s) and off, "A4", "uncovered-unpaid without cause", "no event uncovered-unpaid")
            _expect(s, record, "A4", fl=s[FL] & ~FLAG_COVERED_UNPAID)
        elif ev == n.EV_SERVICE:
            home = n.IDLE in ((ph, s[OR]) if ph == n.FAULT else (ph,))
            need(home, "SPEC 3, service", f"service event in {phase(ph)}", "no event service")
            if a:
                need(ph == n.IDLE and levels & n.SERVICE, "SPEC 3, service", "service mode without the key")
                _expect(s, record, "SPEC 3, service", fl=s[FL] | FLAG_SERVICE)
            else:
                need(
                    not levels & n.SERVICE and levels & n.DOME,
                    "SPEC 3, service",
                    "service mode ended early",
                    "expect dome_lock=off",
                )
                _expect(s, record, "SPEC 3, service", fl=s[FL] & ~FLAG_SERVICE)
        elif ev == n.EV_FAULT:
            need(
                fault_expected(a, s, facts, levels),
                "SPEC 6",
                f"{n.FAULTS[a]} without cause in {phase(ph)}",
                "no event fault",
            )
            bit = 1 << (a - 1)
            need(not s[FS] & bit, "SPEC 6", f"{n.FAULTS[a]} reported twice")
            flags = s[FL] | (FLAG_DISTURBED if a in _DISTURBING else 0)
            if ph == n.FAULT:
                _expect(s, record, "SPEC 6, the first stays", fs=s[FS] | bit, fl=flags)
            else:
                _expect(s, record, "SPEC 6", ph=n.FAULT, or_=ph, fs=s[FS] | bit, f1=a, fl=flags)
                if ph == n.SHAKING and not facts.judging:
                    need(x == facts.begun, "SPEC 6", f"fault counts {x} pulses, {facts.begun} had begun")
        elif ev == n.EV_CLEAR:
            asked = facts.command == "clear" or (facts.turning_off and facts.turned_on)
            need(ph == n.FAULT and asked, "SPEC 3, FAULT", "cleared, nobody asked", "expect phase=FAULT")
            need(
                not cause_present(s, facts, levels),
                "SPEC 3, FAULT",
                "cleared with a cause present",
                "expect phase=FAULT",
            )
            bit = 1 << (a - 1)
            need(s[FS] & bit, "SPEC 6", f"{n.FAULTS[a]} cleared, was not there")
            if record[PH] == n.FAULT:
                _expect(s, record, "SPEC 6", fs=s[FS] & ~bit)
            else:
                need(s[FS] == bit and s[F1] == a, "SPEC 6", "a fault went without an event")
                _expect(s, record, "SPEC 3, FAULT resumes", ph=resumes(s), or_=n.IDLE, fs=0, f1=0)
                facts.cleared = True
        elif ev == n.EV_RECOVERED:
            need(facts.judging and a == ph, "SPEC 7", "recovered without a restart")
            after = ph
            if ph == n.COVERED:
                stays = levels & n.SECURED == n.SECURED
                after = (n.COVERED if stays else n.VOID) if s[FL] & FLAG_BETS else n.IDLE
            _expect(s, record, "SPEC 7", ph=after)
        else:
            raise Violation("events", f"{name} from the round")
        if owed(s) and not owed(record) and ev not in (n.EV_PAID, n.EV_VOID):
            raise Violation("no payout lost", f"{name} ended an outstanding payout", ["expect cover_bar=on"])
        s = record[:8]
    return s


def _check_start(s, facts, levels):
    stay = "expect phase=" + phase(s[PH])
    key = n.LEVER if facts.lever else n.START
    need(s[PH] == n.COVERED, "SPEC 3", f"shake from {phase(s[PH])}", stay)
    need(facts.pressed & key, "SPEC 3", "a shake nobody started", stay)
    need(levels & n.SECURED == n.SECURED, "I1", "a shake that is not secured", stay)
    need(facts.seen == BOTH_OPEN, "latch-not-seen-open", "a shake with a latch not seen open", stay)
    need(not levels & n.SERVICE, "SPEC 3, service", "a shake with the service key on", stay)
    need(facts.room or s[FL] & FLAG_BETS, "journal-full", "a new round without room")


def check_duties(s0, s, records, facts, levels, core_round):
    """Ask for what had to happen in this scan: from `s0` before it to `s` after it."""
    kinds = {r[8] for r in records} if records else _NOTHING
    ph = s[PH]
    secured = levels & n.SECURED == n.SECURED
    covering = levels & n.COVERING == n.COVERING
    stay = s0[PH] == ph and n.EV_CLEAR not in kinds and n.EV_RECOVERED not in kinds
    due = owed(s)
    if not stay:
        pass
    elif ph == n.IDLE:
        if secured and not s[FL] & FLAG_SERVICE:
            broken("SPEC 3", "secured, and still IDLE", "expect phase=COVERED")
        want = levels & n.SERVICE or (s0[FL] & FLAG_SERVICE and not levels & n.DOME)
        if bool(want) != bool(s[FL] & FLAG_SERVICE):
            broken(
                "SPEC 3, service",
                "service mode does not follow",
                "expect dome_lock=" + ("off" if want else "on"),
            )
    elif ph == n.COVERED:
        if not covering:
            to = "VOID" if s[FL] & FLAG_BETS else "IDLE"
            broken("SPEC 3", "uncovered, and still COVERED", "expect phase=" + to)
    elif ph in _LOCKED:
        if not covering:
            broken("SPEC 6", f"opened in {phase(ph)}, no fault", "expect phase=FAULT")
    elif ph == n.CLOSED:
        if not levels & n.COVER:
            broken("A3.2", "lifted, and still CLOSED", "expect phase=PAYOUT")
    elif ph == n.VOID:
        if secured:
            broken("A3.3", "secured, and still VOID", "expect phase=COVERED")
    elif ph == n.FAULT:
        if s[OR] == n.CLOSED and not s[FL] & FLAG_DISTURBED and not levels & n.COVER:
            broken("SPEC 3, FAULT", "a cover lifted meanwhile does not count", "expect cover_bar=on")
        if s[OR] == n.IDLE and s0[FL] & FLAG_SERVICE:
            if bool(s[FL] & FLAG_SERVICE) != bool(levels & n.SERVICE or not levels & n.DOME):
                broken("SPEC 3, service", "service mode does not end with key off and dome closed")
    if not levels & n.DOME and stay and ph != n.IDLE:
        if ph != n.FAULT:
            broken("SPEC 6", "dome-opened is missing", "expect phase=FAULT")
        if (s[OR] != n.IDLE or facts.told & n.DOME_LOCK) and not s[FS] >> (n.F_DOME_OPENED - 1) & 1:
            broken("SPEC 6", "dome-opened is missing", "expect event fault code=dome-opened")
    for code in facts.causes:
        if not s[FS] >> (code - 1) & 1:
            broken("SPEC 6", f"{n.FAULTS[code]} is missing", "expect fault=" + n.FAULTS[code])
    if due and bool(s[FL] & FLAG_COVERED_UNPAID) != bool(levels & n.COVER):
        word = "covered-unpaid" if levels & n.COVER else "uncovered-unpaid"
        broken("A4", "covered-unpaid does not follow the cover", "expect event " + word)
    if not due and s[FL] & FLAG_COVERED_UNPAID:
        broken("A4", "covered-unpaid without a payout")
    _check_memory(s0, s, facts, levels, core_round)
    if records or facts.pressed or facts.turning_off or facts.judging or facts.fired in ("hold", "stuck"):
        events = {(r[8], r[9]) for r in records if r[8] != n.EV_REFUSED or r[10] != n.WHY_TOO_FEW}
        _check_keys(s0, s, events, kinds, facts, levels, core_round)


def _check_memory(s0, s, facts, levels, core_round):
    """Ask that the round remembers what it must and nothing else. `facts` has what it was right to remember
    before this scan, because each scan before was asked the same.
    """
    if core_round._seen != facts.seen:
        need(not facts.seen & ~core_round._seen, "latch-not-seen-open", "a latch seen open is forgotten")
        broken("latch-not-seen-open", "a latch counts as seen open that was not")
    ignored = facts.ignored & levels | facts.stuck
    if facts.cleared or facts.judging:
        ignored |= levels & n.KEYS
    if core_round._ignored != ignored:
        need(not ignored & ~core_round._ignored, "SPEC 3, keys", "a key counts that is to be released first")
        broken("SPEC 3, keys", "a key is ignored that counts")
    hold = 0
    if levels & n.PAID and not ignored & n.PAID:
        if s[PH] == n.PAYOUT and not levels & n.COVER:
            hold = 1
        elif s[PH] == n.VOID and levels & n.SERVICE:
            hold = 2
        if not facts.pressed & n.PAID and (facts.hold != hold or facts.fired == "hold"):
            hold = 0
    if core_round._hold != hold:
        need(not hold, "A4, all 800 ms", "a hold is forgotten", "wait 900", "expect phase=IDLE")
        broken("A4, all 800 ms", "the hold goes on where it may not")
    if s[PH] == n.FAULT and levels & n.SERVICE:
        since = s0[PH] == n.FAULT and not facts.cleared
        turned = facts.turning_on or (since and facts.turned_on)
        # A fault and a turn of the key in one scan may have come in either order.
        if (since or not facts.turning_on) and bool(core_round._turned_on) != bool(turned):
            need(not turned, "SPEC 3, FAULT", "the service key was turned on, and that is forgotten")
            broken("SPEC 3, FAULT", "nobody turned the service key on since the fault")


def _check_keys(s0, s, events, kinds, facts, levels, core_round):
    pressed = facts.pressed
    for i in range(5):
        if not pressed & _KEY_BITS[i]:
            continue
        refused = (n.EV_REFUSED, i) in events
        if n.EV_CLEAR in kinds and (n.EV_KEY_STUCK, i) in events and not refused:
            need(s[PH] == resumes(s0), "SPEC 3, keys", "a key that is ignored acts")
            continue
        acted = {
            n.WHAT_START: n.EV_SHAKE_START in kinds,
            n.WHAT_LEVER: n.EV_SHAKE_START in kinds
            or (s0[PH] in (n.SHAKING, n.BETTING, n.CLOSED) and facts.fired != "window"),
            n.WHAT_BELL: n.EV_BETS_CLOSED in kinds,
            n.WHAT_VOID: n.EV_VOID in kinds,
            n.WHAT_PAID: core_round._hold != 0,
        }[i]
        if (i == n.WHAT_START and facts.lever) or (i == n.WHAT_LEVER and not facts.lever):
            acted = False
        elif i == n.WHAT_LEVER and (n.EV_FAULT in kinds or n.EV_LIFTED in kinds):
            acted = not refused  # the contacts came first in this scan
        what = n.WHATS[i]
        need(
            refused != bool(acted),
            "SPEC 3, keys",
            f"{what} acted: {bool(acted)}, refused: {refused}",
            f"expect event refused what={what}",
        )
        if refused and (s0[PH] == s[PH] or facts.fired == "window") and s[PH] != n.FAULT:
            legal = {
                n.WHAT_START: not facts.lever and s[PH] == n.COVERED and levels & n.SECURED == n.SECURED,
                n.WHAT_LEVER: facts.lever and s[PH] == n.COVERED and levels & n.SECURED == n.SECURED,
                n.WHAT_BELL: s[PH] == n.BETTING,
                n.WHAT_VOID: s[PH] == n.PAYOUT and not levels & n.COVER,
                n.WHAT_PAID: (s[PH] == n.PAYOUT and not levels & n.COVER)
                or (s[PH] == n.VOID and levels & n.SERVICE),
            }[i]
            if legal and i in (n.WHAT_START, n.WHAT_LEVER):
                legal = (
                    facts.seen == BOTH_OPEN and not levels & n.SERVICE and (facts.room or s[FL] & FLAG_BETS)
                )
                legal = legal and not facts.told & n.COVER_BAR  # its release waits for the budget
            need(not legal, "SPEC 3, keys", f"{what} refused without need", f"no event refused what={what}")
    if facts.fired == "hold" and not pressed:
        for ph, event in ((n.PAYOUT, n.EV_PAID), (n.VOID, n.EV_ABANDONED)):
            ready = not levels & n.COVER if ph == n.PAYOUT else levels & n.SERVICE
            if s0[PH] == ph and ready and s[PH] == ph:
                raise Violation(
                    "A4", "held for 800 ms, and nothing happened", [f"expect event {n.EVENTS[event]}"]
                )
    if facts.turning_off and s0[PH] == n.FAULT and facts.turned_on and s[PH] == n.FAULT:
        need(
            cause_present(s, facts, levels),
            "SPEC 3, FAULT",
            "the service key does not clear",
            "expect fault=none",
        )
        need((n.EV_REFUSED, n.WHAT_CLEAR) in events, "refusals", "clear refused in silence")
    if facts.command == "clear" or facts.turning_off or facts.judging:
        if (n.EV_CLEAR in kinds and s[PH] != n.FAULT) or facts.judging:
            down = levels & n.KEYS
            need(
                not down & ~core_round._ignored,
                "SPEC 3, keys",
                "a key down at power-on or after a fault counts",
                "expect event key-stuck",
            )
    if facts.fired == "stuck":
        need(
            n.EV_KEY_STUCK in kinds,
            "SPEC 3, keys",
            "a key down for 10 s is not reported",
            "expect event key-stuck",
        )
    elif n.EV_KEY_STUCK in kinds:
        ok = facts.judging or n.EV_CLEAR in kinds
        need(ok, "SPEC 3, keys", "key-stuck without cause", "no event key-stuck")


_GOOD_STATES = set()


def check_state(s):
    """Check that the fields of a state agree with each other."""
    if s not in _GOOD_STATES:
        _check_state(s)
        _GOOD_STATES.add(s)


def _check_state(s):
    ph = s[PH]
    need((ph == n.FAULT) == bool(s[FS]) == bool(s[F1]), "state", f"{phase(ph)} with faults {s[FS]:x}")
    if ph == n.FAULT:
        need(s[FS] >> (s[F1] - 1) & 1, "state", "the first fault is none of the faults")
        ph = s[OR]
        need(ph != n.FAULT, "state", "a fault that came from FAULT")
    else:
        need(s[OR] == n.IDLE, "state", "an origin without a fault")
    bets = s[FL] & FLAG_BETS
    if ph in _OPENED:
        need(bets, "bets stand", f"{phase(ph)} without bets")
    elif ph == n.IDLE:
        need(not bets, "bets stand", "IDLE with bets")
    need(not s[FL] & FLAG_SERVICE or ph == n.IDLE, "SPEC 3, service", f"service mode in {phase(ph)}")
    over = ph == n.IDLE or (ph == n.COVERED and not bets)
    need(s[DI] == (0, 0, 0) or ph == n.PAYOUT or over, "SPEC 3", f"dice in {phase(ph)}")
    if s[PH] in (n.SHAKING, n.BETTING, n.CLOSED):
        need(not s[FL] & FLAG_DISTURBED, "state", f"disturbed dice in {phase(ph)}")


_WANTED = {}


def check_outputs(s, out, before, levels, facts, poor):
    """I1 to I6 on the outputs `out` of this scan; `before`: of the last; poor: no budget for releases."""
    key = s[PH], s[OR], s[FL] & FLAG_SERVICE, levels & (n.COVER | n.DOME), before & n.DOME_LOCK, facts.board
    if out != _WANTED.get(key):
        _check_outputs(s, out, before, levels, facts, poor)
        if not out & n.DRIVE and not poor:
            _WANTED[key] = out


def _check_outputs(s, out, before, levels, facts, poor):
    ph = s[PH]
    where = s[OR] if ph == n.FAULT else ph
    due = owed(s)
    if out & n.DRIVE:
        whole = [
            f"never {o}=on {c}"
            for o in ("agitator", "agitator_enable")
            for c in (
                "latch_a=open",
                "latch_b=open",
                "latch_a=invalid",
                "latch_b=invalid",
                "cover=off",
                "dome=open",
                "cover_lock=off",
                "cover_bar=on",
                "phase=FAULT",
                "phase=BETTING",
                "phase=COVERED",
            )
        ]
        need(ph == n.SHAKING, "I1", f"agitator on in {phase(ph)}", whole=whole)
        need(levels & n.SECURED == n.SECURED, "I1", f"agitator on, inputs {levels:04x}", whole=whole)
        need(out & before & n.COVER_LOCK, "I1, I2", "agitator on before the lock", whole=whole)
        need(not s[FS] and not due, "I1", "agitator on with a fault or payout outstanding", whole=whole)
        need(out & n.AGITATOR_ENABLE, "I1", "agitator on without its enable")
    lock = where in _LOCKED
    _bolt("I2", n.COVER_LOCK, lock, out, before, poor)
    _bolt("I3", n.COVER_BAR, due, out, before, poor)
    need(
        out & (n.COVER_LOCK | n.COVER_BAR) != n.COVER_LOCK | n.COVER_BAR,
        "I6",
        "lock and bar together",
        whole=["never cover_lock=on cover_bar=on"],
    )
    if ph == n.IDLE:
        dome = not s[FL] & FLAG_SERVICE
    else:
        dome = bool(ph != n.FAULT or s[OR] != n.IDLE or levels & n.DOME or before & n.DOME_LOCK)
    _bolt("I4", n.DOME_LOCK, dome, out, before, poor)
    board = ph == n.BETTING and facts.board
    need(
        bool(out & n.FRONT_BOARD) == board,
        "I5",
        f"front board in {phase(ph)}",
        "expect front_board=" + ("on" if board else "off"),
    )
    alarm = bool(ph == n.FAULT or (due and levels & n.COVER))
    need(
        bool(out & n.ALARM) == alarm,
        "I3, alarm",
        f"alarm is not {alarm} in {phase(ph)}",
        "expect alarm=" + ("on" if alarm else "off"),
    )


def _bolt(rule, bit, want, out, before, poor):
    name = n.OUTPUTS[bit.bit_length() - 1]
    if want:
        need(out & bit, rule, f"{name} is off", f"expect {name}=on")
    elif out & bit:
        need(poor and before & bit, rule, f"{name} is on", f"expect {name}=off")
