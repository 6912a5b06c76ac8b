"""The vocabulary: every name that crosses the device's boundary, and its number inside.

Owns the order of phases, signals, events, fault codes and reasons. The numbers are stored in the journal,
so a list may only ever grow at its end. No logic.
Source: SPEC sections 2, 3, 6; PROTOCOL, "Device -> host".
"""

from micropython import const

# -- Phases (SPEC section 3) ---------------------------------------------------------------------
IDLE = const(0)
COVERED = const(1)
SHAKING = const(2)
BETTING = const(3)
CLOSED = const(4)
PAYOUT = const(5)
VOID = const(6)
FAULT = const(7)
PHASES = ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT")

# -- Contacts: the word a board's read() returns, a set bit = the contact is made ----------------
CONTACTS = (
    "latch_a_no", "latch_a_nc", "latch_b_no", "latch_b_nc", "cover", "dome", "start", "lever",
    "bell", "void", "paid", "service", "motion",
)  # fmt: skip
C_LATCH_A_NO = const(1)
C_LATCH_A_NC = const(2)
C_LATCH_B_NO = const(4)
C_LATCH_B_NC = const(8)

# -- Inputs as reported (`in` of the heartbeat): two bits for each latch, one for each other -----
# latch: 0 open, 1 closed, 2 invalid. cover 1 = on, dome 1 = closed, keys 1 = pressed, service 1 = on,
# motion 1 = moving. From `cover` upward the bits are those of the contact word.
INPUTS = ("latch_a", "latch_b", "cover", "dome", "start", "lever", "bell", "void", "paid", "service",
          "motion")  # fmt: skip
LATCH_VALUES = ("open", "closed", "invalid")
INPUT_VALUES = {
    "latch_a": LATCH_VALUES,
    "latch_b": LATCH_VALUES,
    "cover": ("off", "on"),
    "dome": ("open", "closed"),
    "start": ("released", "pressed"),
    "lever": ("released", "pressed"),
    "bell": ("released", "pressed"),
    "void": ("released", "pressed"),
    "paid": ("released", "pressed"),
    "service": ("off", "on"),
    "motion": ("still", "moving"),
}
LATCH_A_CLOSED = const(0x0001)
LATCH_A_INVALID = const(0x0002)
LATCH_B_CLOSED = const(0x0004)
LATCH_B_INVALID = const(0x0008)
COVER = const(0x0010)
DOME = const(0x0020)
START = const(0x0040)
LEVER = const(0x0080)
BELL = const(0x0100)
VOID_KEY = const(0x0200)
PAID = const(0x0400)
SERVICE = const(0x0800)
MOTION = const(0x1000)
KEYS = const(0x07C0)  # start lever bell void paid: act on their press edge
SECURED = const(0x0035)  # both latches closed, cover on, dome closed
COVERING = const(0x0015)  # both latches closed, cover on

# -- Outputs (`out` of the heartbeat) -------------------------------------------------------------
OUTPUTS = ("agitator", "agitator_enable", "cover_lock", "cover_bar", "dome_lock", "front_board", "alarm")
AGITATOR = const(0x01)
AGITATOR_ENABLE = const(0x02)
COVER_LOCK = const(0x04)
COVER_BAR = const(0x08)
DOME_LOCK = const(0x10)
FRONT_BOARD = const(0x20)
ALARM = const(0x40)
DRIVE = const(0x03)  # both agitator channels
BOLTS = const(0x1C)

# -- The 39 lamps, also the names of the bets -----------------------------------------------------
LAMPS = (
    "small", "big",
    "fish", "prawn", "gourd", "coin", "crab", "rooster",
    "red1", "red2", "red3", "green1", "green2", "green3", "blue1", "blue2", "blue3", "colour3",
    "fish3", "prawn3", "gourd3", "coin3", "crab3", "rooster3", "triple",
    "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15", "n16", "n17",
)  # fmt: skip

# -- Events; the comment at each number says when, and is what EVENTS.md prints ---------------------
EVENTS = (
    "boot", "covered", "uncovered", "shake-start", "shake-done", "bets-open", "bets-closed", "lifted",
    "result", "void", "paid", "covered-unpaid", "uncovered-unpaid", "abandoned", "refused", "key-stuck",
    "fault", "clear", "recovered", "service", "settings", "time", "link", "lost",
)  # fmt: skip
EV_BOOT = const(0)  # at every start, after the self-test
EV_COVERED = const(1)  # cover on and latched over the closed dome
EV_UNCOVERED = const(2)  # cover or a latch opened before the shake
EV_SHAKE_START = const(3)  # the shake begins; the round has its number
EV_SHAKE_DONE = const(4)  # three pulses or strokes are done and the dice have settled
EV_BETS_OPEN = const(5)  # the front board is lit and betting is open
EV_BETS_CLOSED = const(6)  # the bell
EV_LIFTED = const(7)  # the cover is off after the bell: payout is outstanding
EV_RESULT = const(8)  # the host has sent the dice, or corrected them
EV_VOID = const(9)  # the round is void: its bets stand, the shake is repeated
EV_PAID = const(10)  # every prize is paid: the round is over
EV_COVERED_UNPAID = const(11)  # the cover lies on an unpaid round (A4)
EV_UNCOVERED_UNPAID = const(12)  # and was taken off again
EV_ABANDONED = const(13)  # a void round is given up
EV_REFUSED = const(14)  # a key meant nothing, or may not act now; a lever shake had too few strokes
EV_KEY_STUCK = const(15)  # down at power-on, after a clear, or for 10 s: ignored until released
EV_FAULT = const(16)  # a fault occurs, once for each code
EV_CLEAR = const(17)  # a fault is cleared, once for each code, the first one last
EV_RECOVERED = const(18)  # a start found a phase other than IDLE in the journal
EV_SERVICE = const(19)  # service mode begins or ends
EV_SETTINGS = const(20)  # other settings were adopted or refused at a start
EV_TIME = const(21)  # the host has set the clock
EV_LINK = const(22)  # the host was heard again, or not for 5 s
EV_LOST = const(23)  # events were dropped or damaged and never reached the host

# -- Faults (SPEC section 6); 0 = none; bit n-1 of a fault mask stands for fault n ------------------
FAULTS = (
    "none",
    "opened-in-shake", "opened-in-betting", "opened-while-off", "dome-opened", "shaken-late",
    "latch-a-wiring", "latch-b-wiring", "agitator-stalled", "agitator-runaway", "power-lost-in-shake",
    "restart-storm", "clock-stalled", "scan-overrun", "internal-error", "settings-invalid",
    "program-altered", "journal-failed",
)  # fmt: skip
F_OPENED_IN_SHAKE = const(1)
F_OPENED_IN_BETTING = const(2)
F_OPENED_WHILE_OFF = const(3)
F_DOME_OPENED = const(4)
F_SHAKEN_LATE = const(5)
F_LATCH_A_WIRING = const(6)
F_LATCH_B_WIRING = const(7)
F_AGITATOR_STALLED = const(8)
F_AGITATOR_RUNAWAY = const(9)
F_POWER_LOST_IN_SHAKE = const(10)
F_RESTART_STORM = const(11)
F_CLOCK_STALLED = const(12)
F_SCAN_OVERRUN = const(13)
F_INTERNAL_ERROR = const(14)
F_SETTINGS_INVALID = const(15)
F_PROGRAM_ALTERED = const(16)
F_JOURNAL_FAILED = const(17)

# -- What a `refused` or `key-stuck` event names, and why -------------------------------------------
WHATS = ("start", "lever", "bell", "void", "paid", "clear", "abandon", "result", "service")
WHAT_START = const(0)
WHAT_LEVER = const(1)
WHAT_BELL = const(2)
WHAT_VOID = const(3)
WHAT_PAID = const(4)
WHAT_CLEAR = const(5)

WHYS = ("", "wrong-phase", "cover-on", "cause-present", "latch-not-seen-open", "service", "dome-open",
        "not-covered", "too-few", "journal-full", "fault")  # fmt: skip
OK = const(0)
WHY_WRONG_PHASE = const(1)
WHY_COVER_ON = const(2)
WHY_CAUSE_PRESENT = const(3)
WHY_LATCH_NOT_SEEN_OPEN = const(4)
WHY_SERVICE = const(5)
WHY_DOME_OPEN = const(6)
WHY_NOT_COVERED = const(7)
WHY_TOO_FEW = const(8)
WHY_JOURNAL_FULL = const(9)
WHY_FAULT = const(10)

# -- Causes of a restart, and exception types an internal-error event can name ----------------------
CAUSES = ("power-on", "reset", "watchdog", "soft-reset", "deep-sleep", "unknown")
ERRORS = (
    "Exception", "MemoryError", "OSError", "ValueError", "TypeError", "AttributeError", "KeyError",
    "IndexError", "NameError", "ImportError", "RuntimeError", "OverflowError", "ZeroDivisionError",
    "StopIteration", "AssertionError", "NotImplementedError", "UnicodeError", "SyntaxError",
    "KeyboardInterrupt", "SystemExit", "CancelledError", "EOFError", "GeneratorExit",
)  # fmt: skip
