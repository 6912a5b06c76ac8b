"""What fakes raise: when the power goes (nothing a program should catch), and at harm to real hardware."""


class PowerCut(BaseException):
    """The supply is gone: nothing after this instruction has happened."""


class PlantError(Exception):
    """The firmware did something that harms, confuses or waits for real hardware."""
