"""One event as 64 bytes: the form it has in memory, in the journal and on its way to the link.

Owns the layout and nothing else. Every record carries the whole state of the round after its event, so the
newest valid one alone says where the round stood. Little-endian:

    off size field
      0  1   kind       KIND_EVENT or KIND_MARK (a mark has no number of its own and is never sent)
      1  1   event      index into names.EVENTS; of a mark: MARK_ALIVE or MARK_CLEAN
      2  1   phase      phase after the event, low nibble; origin of a fault, high nibble
      3  1   flags      FLAG_* below
      4  4   seq        event number, filled in by the journal; a mark repeats the last one
      8  4   boot       boot counter
     12  4   t_s        whole seconds since boot
     16  2   t_ms       and the milliseconds
     18  2   repeat
     20  4   at         Unix seconds, 0 = unknown, filled in by the journal
     24  4   round
     28  4   ack        last event the host has acknowledged, filled in by the journal
     32  4   faults     mask of latched faults
     36  1   fault      the first of them (names.FAULTS)
     37  3   dice       0, 0, 0 = no result
     40  1   a          arguments, by event: see ARGUMENTS
     41  1   b
     42 18   x, y, text two 32-bit numbers, or up to 18 ASCII characters padded with NUL
     60  4   crc        CRC-32 of the 60 bytes before it, filled in by the journal
"""

from micropython import const

SIZE = const(64)
BODY = const("<BBBBIIIHHIIIIBBBBBB")  # everything before x/y/text: 42 bytes
OFF_EVENT = const(1)
OFF_PHASE = const(2)
OFF_FLAGS = const(3)
OFF_SEQ = const(4)
OFF_BOOT = const(8)
OFF_T_S = const(12)
OFF_T_MS = const(16)
OFF_REPEAT = const(18)
OFF_AT = const(20)
OFF_ROUND = const(24)
OFF_ACK = const(28)
OFF_FAULTS = const(32)
OFF_DICE = const(37)
OFF_A = const(40)
OFF_B = const(41)
OFF_X = const(42)
OFF_TEXT = const(42)
TEXT_SIZE = const(18)
OFF_CRC = const(60)

KIND_EVENT = const(0xE5)
KIND_MARK = const(0xA5)
MARK_ALIVE = const(1)  # this boot has lasted 60 s
MARK_CLEAN = const(2)  # the firmware stops because it was asked to

FLAG_BETS = const(0x01)  # this round has opened bets and is neither paid nor abandoned: a shake repeats it
FLAG_DISTURBED = const(0x02)  # the dice were moved after the shake that counts
FLAG_SERVICE = const(0x04)  # service mode
FLAG_COVERED_UNPAID = const(0x08)  # the cover lies on an unpaid round

# What a, b, x, y and text mean, by event; an event that is not named has no arguments.
#   boot       a = cause (names.CAUSES), b = bit 0 clean, bit 1 options authorised; text = version
#   shake-done a = pulses or strokes
#   refused    a = what (names.WHATS), b = why (names.WHYS)
#   key-stuck  a = key (names.WHATS)
#   fault      a = code (names.FAULTS); of internal-error: b = type (names.ERRORS), text = place;
#              of any fault that stops a shake: x = pulses that had begun
#   clear      a = code
#   recovered  a = phase found in the journal
#   service    a = 1 on, 0 off
#   settings   a = 1 adopted: x = the regulated options (settings.options_word), y = CRC-32 of the record;
#              a = 0 refused: b = index of the field (settings.FIELDS), 254 = no such field, 255 = none;
#              text = its name as it stands in the file
#   time       x = Unix seconds
#   link       a = 1 up, 0 down
#   lost       x = from, y = to
