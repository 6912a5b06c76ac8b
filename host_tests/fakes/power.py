"""What a fake raises when the power goes: like nothing a program should catch."""


class PowerCut(BaseException):
    """The supply is gone: nothing after this instruction has happened."""
