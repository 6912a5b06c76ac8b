# The part of `io` the firmware uses, where the published stubs of MicroPython are wrong: their StringIO is no
# stream (so print_exception would not take it) and has no getvalue().

from _mpy_shed import IOBase_mp

class StringIO(IOBase_mp):
    def __init__(self, string: str = "", /) -> None: ...
    def getvalue(self) -> str: ...
