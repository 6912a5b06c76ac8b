"""All 39 bets for all 216 throws, against the regulation's own words, on both interpreters."""

import json
import re
from itertools import permutations, product

import pytest

import interpreter
from shaker import rules
from shaker.names import LAMPS

THROWS = list(product(range(1, 7), repeat=3))
TEXT = interpreter.FIRMWARE.joinpath("docs/regulation/despacho-59-2004.pt.txt").read_text("utf-8")

FACES = {"Um": 1, "Dois": 2, "Três": 3, "Quatro": 4, "Cinco": 5, "Seis": 6}
FIGURES = {
    "Peixe": "fish",
    "Camarão": "prawn",
    "Cabaço": "gourd",
    "Moeda": "coin",
    "Caranguejo": "crab",
    "Galo": "rooster",
}
COLOURS = {"Vermelha": "red", "Verde": "green", "Azul": "blue"}
TIMES = {
    "uma": 1,
    "duas": 2,
    "três": 3,
    "seis": 6,
    "sete": 7,
    "oito": 8,
    "doze": 12,
    "catorze": 14,
    "dezoito": 18,
    "vinte": 20,
    "vinte e quatro": 24,
    "cinquenta": 50,
    "cento e cinquenta": 150,
}


def article(number):
    """The lines of one article of the Portuguese original."""
    body = TEXT.split("REGULAMENTO OFICIAL DO")[1].split(f"Artigo {number}.º")[1].split("Artigo ")[0]
    return [line for line in body.splitlines() if line]


def dice_of_article_1():
    """{face: (figure, colour)} as Article 1 says."""
    found = {}
    for line in article(1):
        words = line.split()
        if len(words) == 3 and words[0] in FIGURES and words[2] in FACES:
            found[FACES[words[2]]] = (FIGURES[words[0]], COLOURS[words[1]])
    return found


def prizes_of_article_6():
    """{what is bet: multiple of the stake} as Article 6 says, keyed by its own words."""
    found = {}
    for line in article(6):
        match = re.match(r"(?:\d+\) )?«?(.+?)»? — (.+) vez(?:es)? a importância da aposta", line)
        if match:
            found[match[1]] = TIMES[match[2]]
    return found


DICE = dice_of_article_1()
PRIZES = prizes_of_article_6()


def by_the_regulation(dice):
    """The winning bets with their odds, read off Articles 5 to 7 sentence by sentence."""
    figures = [DICE[face][0] for face in dice]
    colours = [DICE[face][1] for face in dice]
    total = sum(dice)
    alike = len(set(figures)) == 1
    won = {}
    if total in range(4, 11) and not alike:
        won["small"] = PRIZES["Pequeno"]
    if total in range(11, 18) and not alike:
        won["big"] = PRIZES["Grande"]
    for figure in FIGURES.values():
        words = {
            1: "Um dado com a figura escolhida",
            2: "Dois dados com a figura escolhida",
            3: "Três dados com a figura escolhida",
        }
        if figure in figures:
            won[figure] = PRIZES[words[figures.count(figure)]]
        if figures == [figure] * 3:
            won[figure + "3"] = PRIZES["Três dados com uma figura escolhida"]
    for colour in COLOURS.values():
        if colours.count(colour) == 1:
            won[colour + "1"] = PRIZES["Um dado de uma cor escolhida"]
        if colours.count(colour) == 2:
            won[colour + "2"] = PRIZES["Dois dados de uma cor escolhida"]
        if colours.count(colour) == 3:
            won[colour + "3"] = PRIZES["Três dados de uma cor escolhida"]
    if len(set(colours)) == 1:
        won["colour3"] = PRIZES["Três dados da mesma cor"]
    if alike:
        won["triple"] = PRIZES["Três dados de igual figura não escolhida"]
    for words, odds in PRIZES.items():
        if re.fullmatch(r"[\d, ou]+", words) and total in map(int, re.findall(r"\d+", words)):
            won[f"n{total}"] = odds
    return won


def test_the_regulation_was_understood():
    assert len(DICE) == 6 and len(PRIZES) == 17
    assert all(DICE[face][1] == DICE[7 - face][1] for face in DICE)


def test_faces_figures_and_colours_are_those_of_article_1():
    assert {i + 1: (rules.FIGURES[i], rules.COLOURS[rules.COLOUR_OF[i]]) for i in range(6)} == DICE


@pytest.mark.parametrize("dice", THROWS)
def test_each_throw_wins_what_the_regulation_says(dice):
    assert rules.winning(dice) == by_the_regulation(dice)


def test_the_order_of_the_dice_does_not_matter():
    for dice in THROWS:
        for other in permutations(dice):
            assert rules.winning(list(other)) == rules.winning(dice)


def test_bets_come_in_the_order_of_the_lamps():
    for dice in THROWS:
        places = [LAMPS.index(bet) for bet in rules.winning(dice)]
        assert places == sorted(places)


def test_lamps_are_the_winning_bets():
    for dice in THROWS:
        low, high = rules.lamps(dice)
        assert low < 1 << 20 and high < 1 << 19
        word = low | high << 20
        assert [LAMPS[i] for i in range(39) if word >> i & 1] == list(rules.winning(dice))


# Throws of 216 that win each bet, and what the house keeps of 216 stakes: counted by hand.
HOUSE = {
    "small big": (105, 6),
    "fish prawn gourd coin crab rooster": (91, 17),
    "red1 green1 blue1": (96, 24),
    "red2 green2 blue2": (48, 24),
    "red3 green3 blue3": (8, 48),
    "colour3": (24, 24),
    "fish3 prawn3 gourd3 coin3 crab3 rooster3": (1, 65),
    "triple": (6, 66),
    "n4 n17": (3, 63),
    "n5 n16": (6, 102),
    "n6 n15": (10, 66),
    "n7 n14": (15, 21),
    "n8 n13": (21, 27),
    "n9 n12": (25, 41),
    "n10 n11": (27, 27),
}


@pytest.mark.parametrize("bets", HOUSE)
def test_house_facts(bets):
    throws, keeps = HOUSE[bets]
    for bet in bets.split():
        odds = [rules.winning(dice).get(bet, -1) for dice in THROWS]
        assert sum(won > 0 for won in odds) == throws
        assert -sum(odds) == keeps


def test_every_lamp_is_a_bet_of_the_house_facts():
    assert sorted(" ".join(HOUSE).split()) == sorted(LAMPS)


REFUSED = [
    ("(1, 2)", "dice: "),
    ("(1, 2, 3, 4)", "dice: "),
    ("()", "dice: "),
    ("None", "dice: "),
    ("123", "dice: "),
    ("'123'", "dice: "),
    ("b'\\x01\\x02\\x03'", "dice: "),
    ("{1: 1, 2: 2, 3: 3}", "dice: "),
    ("(0, 2, 3)", "dice[0]: "),
    ("(1, 7, 3)", "dice[1]: "),
    ("(1, 2, -1)", "dice[2]: "),
    ("(1, 2, 1 << 70)", "dice[2]: "),
    ("(True, 2, 3)", "dice[0]: "),
    ("(1, 2.0, 3)", "dice[1]: "),
    ("(1, 2, '3')", "dice[2]: "),
    ("[1, 2, None]", "dice[2]: "),
    ("(1, (2,), 3)", "dice[1]: "),
]


@pytest.mark.parametrize(("dice", "place"), REFUSED)
def test_what_are_no_dice_is_refused_with_its_place(dice, place):
    for function in (rules.winning, rules.lamps, rules.check):
        with pytest.raises(ValueError, match=re.escape(place)):
            function(eval(dice))


ON_MICROPYTHON = """
import json, sys
from shaker import rules
for a in range(1, 7):
    for b in range(1, 7):
        for c in range(1, 7):
            won = rules.winning((a, b, c))
            print(json.dumps([[a, b, c], [[bet, odds] for bet, odds in won.items()], rules.lamps((a, b, c))]))
for dice in json.loads(sys.stdin.read()):
    try:
        rules.winning(eval(dice))
        print("accepted", dice)
    except ValueError as error:
        print(json.dumps(str(error)))
"""


def test_micropython_agrees():
    said = [
        json.loads(line)
        for line in interpreter.run(ON_MICROPYTHON, json.dumps([dice for dice, _ in REFUSED])).splitlines()
    ]
    for (dice, won, lamps), expected in zip(said[:216], THROWS, strict=True):
        assert tuple(dice) == expected
        assert [tuple(pair) for pair in won] == list(rules.winning(expected).items())
        assert tuple(lamps) == rules.lamps(expected)
    for words, (_, place) in zip(said[216:], REFUSED, strict=True):
        assert words.startswith(place)
