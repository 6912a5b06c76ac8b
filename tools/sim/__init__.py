"""The live virtual table: a page, a pseudo-terminal, and the real firmware under a real interpreter.

machine.py runs the firmware and its world; plant.py is what people's hands and the dice do; uart.py is the
line with its pseudo-terminal and the built-in host; server.py puts them together and serves static/.
Holds no rule of the game: what the page shows comes from the firmware, its UART, or the plant.
"""
