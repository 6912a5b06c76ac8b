# What is frozen into the image: the port's own start code and the whole firmware, nothing more.
# A frozen boot.py and main.py are found before files of that name, so no file can replace them.
freeze("$(PORT_DIR)/modules")
require("neopixel")

package("shaker", base_path="$(BOARD_DIR)/../../firmware")
module("boot.py", base_path="$(BOARD_DIR)/../../firmware")
module("main.py", base_path="$(BOARD_DIR)/../../firmware")
