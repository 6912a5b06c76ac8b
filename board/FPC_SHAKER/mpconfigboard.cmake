# Board of the Fish-Prawn-Crab shaker: ESP32-WROOM-32E, 4 MiB flash, no PSRAM.
set(IDF_TARGET esp32)

set(SDKCONFIG_DEFAULTS
    boards/sdkconfig.base
    ${SDKCONFIG_IDF_VERSION_SPECIFIC}
    ${MICROPY_BOARD_DIR}/sdkconfig.board
)

# The partition table lies beside this file, wherever that is. ESP-IDF looks for a relative name in the port's own
# folder, so the absolute one is written into a further file of defaults.
set(SHAKER_SDKCONFIG ${CMAKE_BINARY_DIR}/sdkconfig.shaker_partitions)
file(WRITE ${SHAKER_SDKCONFIG}
    "CONFIG_PARTITION_TABLE_CUSTOM=y\n"
    "CONFIG_PARTITION_TABLE_CUSTOM_FILENAME=\"${MICROPY_BOARD_DIR}/partitions.csv\"\n"
)
list(APPEND SDKCONFIG_DEFAULTS ${SHAKER_SDKCONFIG})

if(NOT MICROPY_FROZEN_MANIFEST)
    set(MICROPY_FROZEN_MANIFEST ${MICROPY_BOARD_DIR}/manifest.py)
endif()
