"""Storage as nobody wants to find it, under the whole firmware: it boots, stays safe, and says what is wrong.

Each case spoils the chip while the power is off; then the table is watched for a while: no crash loop, no
drive, nothing formatted that was not blank, the fault or event that names the trouble; and where a round
can be played it is.

Runs on CPython and MicroPython: PROGRAM FLIPS [SEED], FLIPS damaged bits each in a boot of its own.
"""

import os
import sys

import flash
from croupier import Game
from lcg import Lcg
from shaker import names
from table import BOLTS, KEY

QUIET_MS = 4000
HEAD = '{"table":"bench","key":"%s"' % "".join(["%02x" % byte for byte in KEY])

BAD_SETTINGS = (
    "", " ", "{", "}", "[]", "null", "0", "nonsense", "{}{}", "[" * 300, '{"a":' * 300, "\0" * 64, "\xff\xfe",
    HEAD, HEAD + ',"pulse_ms":301}', HEAD + ',"pulse_ms":1e2}', HEAD + ',"pulse_ms":"250"}',
    HEAD + ',"pulse_ms":99999999999999999999}', HEAD + ',"front_board":1}', HEAD + ',"bolt_ms":true}',
    HEAD + ',"unknown":1}', HEAD + ',"gap_ms":300,"gap_ms":400}', HEAD + ',"duty":-1}',
    HEAD + "}" + " " * 3000,
    HEAD + ',"authorisation":{"ref":"x"}}', '{"key":"12"}', "{'table':'x'}", '{"table":"\\u00e9"}',
)  # fmt: skip
FOREIGN = (
    ("tail.log", b"not a journal at all", "journal-failed"),
    ("tail.log", b"\xe5" * 700, "journal-failed"),
    ("00000001.log", b""),
    ("00000001.log", b"SHKJ" + b"\xff" * 600, "journal-failed"),
    ("FFFFFFFF.log", b"SHKJ" * 200),
    ("0000000G.log", b"x"),
    ("readme.txt", b"hello"),
    ("a name with blanks and = signs", b"\0\1\2"),
    ("n" * 100, b"long"),
    ("settings.bad", b"old"),
    ("settings.json.tmp", b"{"),
    ("settings.tmp", b"{"),
)
FOLDERS = (
    ("tail.log", "journal-failed"),
    ("00000001.log", "journal-failed"),
    ("settings.json", "settings-invalid"),
    ("settings.new", "none"),
    ("settings.bad", "none"),
    ("folder", "none"),
)


def _put(files, name, data):
    with files.open(name, "wb") as f:
        f.write(data)


def _make_folder(files, name):
    if sys.implementation.name == "micropython":
        os.mkdir(files.root + "/" + name)
    else:
        from littlefs import lfs

        files._do(lfs.mkdir, name)


class Case:
    """Plays one spoiled chip. `spoil(game)` runs without power; `wants` are the faults it may end in."""

    def __init__(self, name, spoil, wants=("none",), history=False, whole_round=True, unchanged=False):
        self.name = name
        self.spoil = spoil
        self.wants = wants
        self.history = history  # a payout is outstanding when the power goes
        self.whole_round = whole_round
        self.unchanged = unchanged  # not one byte of the chip may be written

    def play(self, program):
        """Play it; returns the fault that stood after the quiet time."""
        found = []

        def drive():
            if game.world.outputs & names.DRIVE:
                game.fail("drive")
            app = game.table.running()
            if app and app.core.state.faults >> (names.F_INTERNAL_ERROR - 1) & 1:
                game.fail("an exception reached the top")

        def script(game):
            if self.history:
                while game.value("phase") != "PAYOUT":
                    yield from game.step(None)
                yield 300
            game.world.power_off()
            game.chip.disarm()
            yield flash.PowerCut()
            self.spoil(game)
            before = bytes(game.chip.data)
            boots = game.world.boots
            bolts = [game.world.bolt(name) for name in BOLTS]
            game.world.power_on()
            game.table.after_scan = drive
            yield QUIET_MS
            game.need(game.world.boots == boots + 1, "it restarts by itself")
            game.need(game.up(), "it does not run")
            if self.unchanged:
                game.need(before == bytes(game.chip.data), "the chip was written to")
            fault = game.value("fault")
            found.append(fault)
            game.need(fault in self.wants, "fault %s, not %s" % (fault, " or ".join(self.wants)))
            on = game.world.output
            game.need(game.host.heartbeat is not None, "the host hears nothing")
            told = game.host.heartbeat["flt"] or "none"
            game.need(told == fault, "the host is told of " + told)
            if fault == "none":
                game.need(
                    on("alarm") == "off" and on("front_board") == "off",
                    "alarm or front board without a cause",
                )
            else:
                game.need(on("alarm") == "on" and on("front_board") == "off", "no alarm, or front board")
            if fault == "journal-failed":
                game.need([game.world.bolt(name) for name in BOLTS] == bolts, "a bolt moved by chance")
            if self.history and game.value("phase") == "PAYOUT":
                game.need(on("cover_bar") == "on" and on("dome_lock") == "on", "payout is not barred")
            game.table.after_scan = None
            if self.whole_round and fault == "none":
                game.host.absent = game.table.running().core.settings.key is None
                yield from game.finish(dice=None)
                yield from game.round(dice=None)

        game = Game(program, script, watch=False)
        game.play()
        return found[0]


def _fill(game):
    def act(files):
        game.table.storage.fill()

    game.table.storage.service(act)


def _whole(byte):
    def spoil(game):
        game.chip.data[:] = bytes([byte]) * len(game.chip.data)

    return spoil


def _garbage(game):
    noise = Lcg(5)
    data = noise.bytes(4096)
    for at in range(0, len(game.chip.data), 4096):
        game.chip.data[at : at + 4096] = data


def _all_but_first(game):
    game.chip.data[:8192] = b"\xff" * 8192


def _read_only(game):
    game.chip.read_only = True


def _failing(game):
    game.chip.failing = True


def _file(name, data):
    def spoil(game):
        game.table.storage.service(lambda files: _put(files, name, data))

    return spoil


def _folder(name):
    def spoil(game):
        def act(files):
            if files.size(name) >= 0:
                files.remove(name)
            _make_folder(files, name)

        game.table.storage.service(act)

    return spoil


def _remove(*doomed):
    def spoil(game):
        def act(files):
            for name in files.listdir():
                for end in doomed:
                    if name.endswith(end):
                        files.remove(name)

        game.table.storage.service(act)

    return spoil


def _spoil_newest(game):
    """Damage the journal's newest record, in a file that LittleFS finds sound."""

    def act(files):
        with files.open("tail.log", "rb") as f:
            data = bytearray(f.read())
        newest = max(range(0, len(data), 64), key=lambda at: data[at + 4 : at + 8])
        data[newest + 20] ^= 1
        _put(files, "tail.log", data)

    game.table.storage.service(act)


def _flip(chip, chance):
    """Turn over one bit of what is written."""
    while True:
        at = chance.below(chip.blocks) * chip.block_size + chance.below(chip.block_size)
        if chip.data[at] != 0xFF:
            chip.data[at] ^= 1 << chance.below(8)
            return


FAILED = ("journal-failed",)


def cases():
    """Return every case but the flipped bits."""
    found = [
        Case("blank chip", _whole(0xFF)),
        Case("chip of zeros", _whole(0), FAILED, unchanged=True),
        Case("garbage", _garbage, FAILED, unchanged=True),
        Case("no superblock", _all_but_first, FAILED, unchanged=True),
        Case("full", _fill),
        Case("read-only", _read_only, FAILED, unchanged=True),
        Case("read-only in payout", _read_only, FAILED, history=True, unchanged=True),
        Case("unreadable", _failing, FAILED, unchanged=True),
        Case("unreadable in payout", _failing, FAILED, history=True, unchanged=True),
        Case("no files", _remove("")),
        Case("no journal", _remove(".log"), history=True),
        Case("newest record damaged", _spoil_newest, FAILED, history=True),
        Case("no segments", _remove("1.log"), history=True),
        Case("no tail", _remove("tail.log"), history=True),
    ]
    for text in BAD_SETTINGS:
        data = bytes([ord(c) for c in text])
        found.append(
            Case("settings.json " + repr(text[:40]), _file("settings.json", data), ("settings-invalid",))
        )
        found.append(Case("settings.new " + repr(text[:40]), _file("settings.new", data)))
    for row in FOREIGN:
        fault = row[2] if len(row) > 2 else "none"
        found.append(Case("foreign file " + row[0][:20], _file(row[0], row[1]), (fault,)))
    for name, fault in FOLDERS:
        found.append(Case("a folder " + name, _folder(name), (fault,), history=True))
    return found


def main(program, flips=20, seed=0, first=0, step=1):
    """Play every `step`-th case from `first` and `flips` damaged bits; print what each ended in."""
    played = cases()[first::step]
    chance = Lcg(seed)
    for number in range(flips):

        def spoil(game):
            _flip(game.chip, chance)

        # A damaged commit takes LittleFS back to the one before it: an older state, which is seen where it
        # does not fit the table.
        wants = ("none", "journal-failed", "settings-invalid", "opened-while-off", "power-lost-in-shake")
        played.append(Case("bit flip %d" % number, spoil, wants, history=True))
    for case in played:
        try:
            print("%s: %s" % (case.name, case.play(program)))
        except Exception as error:
            print(case.name)
            sys.print_exception(error)
            return 1
    print("cases %d" % len(played))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *[int(word) for word in sys.argv[2:]]))
