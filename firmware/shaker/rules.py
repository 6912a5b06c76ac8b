"""The game: faces, figures, colours, and what three dice win. Despacho 59/2004, Articles 1, 5, 6 and 7.

Owns every number of the payout table. Pure; knows nothing of phases, and takes no commission on anything.
Odds are integer multiples of the stake. The bets are names.LAMPS, in that order.
"""

from collections import OrderedDict

from micropython import const

from shaker.names import LAMPS

# A1.1: face 1 is FIGURES[0]; opposite faces add up to seven (A1.2) and so share their colour.
FIGURES = ("fish", "prawn", "gourd", "coin", "crab", "rooster")
COLOURS = ("red", "green", "blue")
COLOUR_OF = (0, 1, 2, 2, 1, 0)  # index into COLOURS, by face - 1

# Where each kind of bet begins in names.LAMPS.
_SMALL = const(0)
_BIG = const(1)
_FIGURE = const(2)
_COLOUR = const(8)
_COLOUR3 = const(17)
_FIGURE3 = const(18)
_TRIPLE = const(24)
_NUMBER = const(25)
_BETS = const(39)
_LOW = const(20)  # lamps in the first word of lamps()

# A6, as multiples of the stake.
_SMALL_BIG_ODDS = const(1)  # A6.1, A6.2
_COLOUR_ODDS = b"\x01\x03\x14"  # A6.4 to A6.6: one, two, three dice of a chosen colour
_COLOUR3_ODDS = const(7)  # A6.7
_FIGURE3_ODDS = const(150)  # A6.8
_TRIPLE_ODDS = const(24)  # A6.9
_NUMBER_ODDS = b"\x32\x12\x0e\x0c\x08\x06\x06"  # A6.10: 4 to 10, and 17 down to 11


def check(dice):
    """Raise ValueError, naming the place, unless `dice` is a tuple or list of three ints 1-6."""
    if not isinstance(dice, (tuple, list)) or len(dice) != 3:
        raise ValueError("dice: three faces")
    for i in range(3):
        if type(dice[i]) is not int or not 1 <= dice[i] <= 6:  # a bool is no face
            raise ValueError("dice[%d]: a face is an integer 1-6" % i)


def _odds(dice):
    """Return the odds of all 39 bets in one byte each, 0 = lost."""
    check(dice)
    odds = bytearray(_BETS)
    colours = bytearray(3)
    total = 0
    for face in dice:
        total += face
        odds[_FIGURE + face - 1] += 1  # A5.3, A6.3: once the stake for each die that shows it
        colours[COLOUR_OF[face - 1]] += 1
    for colour in range(3):
        count = colours[colour]
        if count:  # A5.4 to A5.6: exactly one, exactly two, three
            odds[_COLOUR + 3 * colour + count - 1] = _COLOUR_ODDS[count - 1]
        if count == 3:  # A5.7
            odds[_COLOUR3] = _COLOUR3_ODDS
    if 4 <= total <= 17:  # A5.10
        odds[_NUMBER + total - 4] = _NUMBER_ODDS[min(total, 21 - total) - 4]
    if dice[0] == dice[1] == dice[2]:  # A5.8, A5.9; Small and Big lose (A7)
        odds[_FIGURE3 + dice[0] - 1] = _FIGURE3_ODDS
        odds[_TRIPLE] = _TRIPLE_ODDS
    elif total <= 10:  # A5.1: from 4, as 3 is a triple
        odds[_SMALL] = _SMALL_BIG_ODDS
    else:  # A5.2: to 17, as 18 is a triple
        odds[_BIG] = _SMALL_BIG_ODDS
    return odds


def winning(dice):
    """Return {bet: odds} of the bets that `dice` (three ints 1-6) win, in the order of names.LAMPS.

    Raises ValueError as check() does.
    """
    odds = _odds(dice)
    won = OrderedDict()  # a MicroPython dict has no order
    for i in range(_BETS):
        if odds[i]:
            won[LAMPS[i]] = odds[i]
    return won


def lamps(dice):
    """Return the winning bets as lamps (A3.2): LAMPS[0:20] and LAMPS[20:39], lowest bit first.

    Raises ValueError as check() does.
    """
    odds = _odds(dice)
    low = high = 0
    for i in range(_BETS):
        if odds[i]:
            if i < _LOW:
                low |= 1 << i
            else:
                high |= 1 << (i - _LOW)
    return low, high
