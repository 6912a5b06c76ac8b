"""neopixel.NeoPixel over the current World: write() shows the buffer, green first as WS2812 take it."""

_world = None


def install(world):
    """Let the module act on `world`."""
    global _world
    _world = world


class NeoPixel:
    """A chain of `n` WS2812 on a pin of the table."""

    ORDER = (1, 0, 2, 3)

    def __init__(self, pin, n, bpp=3, timing=1):
        _world.alive()
        if bpp != 3:
            raise ValueError("WS2812 have three colours")
        self._world = _world
        self.pin = pin
        self.n = n
        self.bpp = bpp
        self.buf = bytearray(n * bpp)
        if pin.id not in _world.pixels or len(_world.pixels[pin.id]) != n * bpp:
            _world.pixels[pin.id] = bytearray(n * bpp)

    def __len__(self):
        return self.n

    def __setitem__(self, i, v):
        offset = i * self.bpp
        for k in range(self.bpp):
            if not 0 <= v[k] <= 255:
                raise ValueError("a colour is 0 to 255")
            self.buf[offset + self.ORDER[k]] = v[k]

    def __getitem__(self, i):
        offset = i * self.bpp
        return tuple([self.buf[offset + self.ORDER[k]] for k in range(self.bpp)])

    def fill(self, v):
        """Set every LED."""
        for i in range(self.n):
            self[i] = v

    def write(self):
        """Send the buffer to the chain."""
        self._world.alive()
        self._world.pixels[self.pin.id][:] = self.buf
        self._world.led_writes += 1
