"""Pin numbers (ESP32 GPIO). Generated from board/pins.csv by board/generate.py: do not edit."""

from micropython import const

LATCH_A_NO = const(32)
LATCH_A_NC = const(33)
LATCH_B_NO = const(27)
LATCH_B_NC = const(4)
COVER = const(13)
DOME = const(14)
START = const(34)
LEVER = const(36)
BELL = const(35)
VOID = const(5)
PAID = const(15)
SERVICE = const(17)
MOTION = const(39)
AGITATOR = const(25)
AGITATOR_ENABLE = const(26)
COVER_LOCK = const(21)
COVER_BAR = const(22)
DOME_LOCK = const(23)
FRONT_BOARD = const(18)
ALARM = const(19)
LAYOUT = const(2)
STATUS = const(12)
UART_TX = const(0)
UART_RX = const(16)

# In the order of names.CONTACTS and names.OUTPUTS.
CONTACTS = (32, 33, 27, 4, 13, 14, 34, 36, 35, 5, 15, 17, 39)
OUTPUTS = (25, 26, 21, 22, 23, 18, 19)
# Contacts that have the chip's own pull-up besides their resistor; all are made when low.
PULLED = (32, 33, 27, 4, 13, 14, 5, 15, 17)
