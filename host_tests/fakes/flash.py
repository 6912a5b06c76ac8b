"""A NOR flash chip that behaves: programming clears bits, erasing sets a block, power can go at any moment.

Offers MicroPython's extended block protocol (readblocks, writeblocks with an offset, ioctl 1 to 6). Runs on
CPython and MicroPython alike. An *operation* is one program or one erase; reads do not count. Times in ms.
"""

from power import PowerCut

_EIO = 5
_EROFS = 30
TORN = "torn"
BEFORE = "before"
AFTER = "after"

STALL_MS = 80
LONG_STALL_MS = 2000


class Flash:
    """`blocks` blocks of `block_size` bytes, all erased.

    `on_stall(ms)`, when set, is called for each erase: 80 ms, and 2 s for every `long_stall_every`-th one
    (0 = never). `read_only` makes programs and erases raise OSError, `failing` reads too.
    `trace`, when set to a list, receives (kind, block, offset, size) of each operation.
    """

    def __init__(self, blocks=64, block_size=4096):
        self.blocks = blocks
        self.block_size = block_size
        self._erased = b"\xff" * block_size
        self.data = bytearray(block_size * blocks)
        for at in range(0, len(self.data), block_size):
            self.data[at : at + block_size] = self._erased
        self.programs = 0
        self.erases = 0
        self.block_programs = [0] * blocks
        self.block_erases = [0] * blocks
        self.reads = 0
        self.overwrites = 0
        self.powered = True
        self.world = None  # when set, the supply is the world's
        self.read_only = False
        self.failing = False
        self.on_stall = None
        self.on_cut = None  # called when a cut happens: the whole device loses its power
        self.long_stall_every = 0
        self.trace = None
        self._cut_in = 0
        self._cut_how = TORN
        self._fail_in = 0

    @property
    def operations(self):
        """Programs and erases so far."""
        return self.programs + self.erases

    # -- the supply -----------------------------------------------------------------------------------
    def cut_at(self, n, how=TORN):
        """Cut the power at the n-th operation from now (1 = the next): half done, or BEFORE or AFTER it."""
        if n < 1:
            raise ValueError("operations are counted from 1")
        self._cut_in = n
        self._cut_how = how

    @property
    def armed(self):
        """True while a cut is pending."""
        return self._cut_in > 0

    def disarm(self):
        """Forget a pending cut."""
        self._cut_in = 0
        self._fail_in = 0

    def power_off(self):
        """Take the supply away: every access raises PowerCut; a pending cut is forgotten."""
        self.powered = False
        self._cut_in = 0

    def power_on(self):
        """Give the supply back. What was programmed is still there."""
        self.powered = True

    def fail_at(self, n):
        """Let the n-th operation from now (1 = the next) do nothing and raise OSError, once."""
        self._fail_in = n

    # -- damage -----------------------------------------------------------------------------------------
    def flip(self, block, offset, bit):
        """Turn over one bit, as ageing does."""
        self.data[block * self.block_size + offset] ^= 1 << bit

    # -- the block protocol -----------------------------------------------------------------------------
    def readblocks(self, block, buf, offset=0):
        """Fill `buf` from `block` on, starting `offset` bytes into it."""
        self._alive()
        self.reads += 1
        start = block * self.block_size + offset
        buf[:] = memoryview(self.data)[start : start + len(buf)]
        return 0

    def writeblocks(self, block, buf, offset=None):
        """Program `buf`; without an offset the blocks it covers are erased first."""
        if offset is None:
            for n in range((len(buf) + self.block_size - 1) // self.block_size):
                self._erase(block + n)
            offset = 0
        self._program(block, buf, offset)
        return 0

    def ioctl(self, op, arg):
        """Answer MicroPython's block device requests: 4 = number of blocks, 5 = their size, 6 = erase."""
        if op == 4:
            return self.blocks
        if op == 5:
            return self.block_size
        if op == 6:
            self._erase(arg)
        else:
            self._alive()
        return 0

    def _alive(self):
        if self.world:
            self.world.alive()
        elif not self.powered:
            raise PowerCut()
        if self.failing:
            raise OSError(_EIO)

    def _die(self):
        if self.world:
            self.world.power_off()
            self.world.alive()  # raises the world's own PowerCut
        self.powered = False
        raise PowerCut()

    def _begin(self, kind, block, offset, size):
        """Account for one operation; return how much of it is done: BEFORE, TORN, AFTER or None = all."""
        self._alive()
        if self.read_only:
            raise OSError(_EROFS)
        if self.trace is not None:
            self.trace.append((kind, block, offset, size))
        if self._fail_in:
            self._fail_in -= 1
            if not self._fail_in:
                raise OSError(_EIO)
        if self._cut_in:
            self._cut_in -= 1
            if not self._cut_in:
                return self._cut_how
        return None

    def _program(self, block, buf, offset):
        size = len(buf)
        cut = self._begin("program", block, offset, size)
        if cut == BEFORE:
            self._die()
        self.programs += 1
        self.block_programs[block] += 1
        if cut == TORN:
            size //= 2
        start = block * self.block_size + offset
        data = self.data
        # Views, not copies: a long run on a capped heap is to be about the firmware's memory.
        if memoryview(data)[start : start + size] == memoryview(self._erased)[:size]:
            data[start : start + size] = memoryview(buf)[:size]
        else:
            self.overwrites += 1
            for i in range(size):
                data[start + i] &= buf[i]
        if cut:
            self._die()

    def _erase(self, block):
        cut = self._begin("erase", block, 0, self.block_size)
        if cut == BEFORE:
            self._die()
        self.erases += 1
        self.block_erases[block] += 1
        size = self.block_size // 2 if cut == TORN else self.block_size
        start = block * self.block_size
        self.data[start : start + size] = memoryview(self._erased)[:size]
        if cut:
            self._die()
        if self.on_stall:
            n = self.long_stall_every
            self.on_stall(LONG_STALL_MS if n and self.erases % n == 0 else STALL_MS)
