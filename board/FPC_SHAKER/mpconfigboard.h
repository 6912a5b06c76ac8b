// Board of the Fish-Prawn-Crab shaker: ESP32-WROOM-32E, 4 MiB flash, no PSRAM.

#define MICROPY_HW_BOARD_NAME "Fish-Prawn-Crab shaker"
#define MICROPY_HW_MCU_NAME "ESP32" // the end of sys.implementation._machine, by which shakerctl knows the chip

// A gaming device has no radio: it talks over its UART alone.
#define MICROPY_PY_NETWORK_WLAN (0)
#define MICROPY_PY_BLUETOOTH (0)
#define MICROPY_PY_ESPNOW (0)
