"""A viewer of /websockify, as RFC 6143 has it; raw pictures."""
import asyncio
import struct
import time

import websockets

RAW, EXTENDED_CLIPBOARD, DESKTOP_SIZE, EXTENDED_DESKTOP_SIZE, FENCE = 0, -1063131698, -223, -308, -312


class Viewer:
    def __init__(self, url, headers=None, encodings=(RAW, DESKTOP_SIZE)):
        self.loop, self.left = asyncio.new_event_loop(), b""
        self.socket = self.loop.run_until_complete(self._open(url, headers))
        self.encodings = encodings

    @staticmethod
    async def _open(url, headers):
        return await websockets.connect(url, max_size=None, max_queue=None, open_timeout=120, ping_interval=None,
                                        extra_headers=headers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.loop.run_until_complete(self.socket.close())
        self.loop.close()

    def send(self, data):
        self.loop.run_until_complete(self.socket.send(bytes(data)))

    def read(self, size, timeout=60):
        while len(self.left) < size:
            self.left += self.loop.run_until_complete(asyncio.wait_for(self.socket.recv(), timeout))
        out, self.left = self.left[:size], self.left[size:]
        return out

    def greet(self):
        assert self.read(12) == b"RFB 003.008\n"
        self.send(b"RFB 003.008\n")
        assert 1 in self.read(self.read(1)[0])
        self.send(b"\1")
        assert self.read(4) == b"\0\0\0\0"
        self.send(b"\1")
        self.width, self.height = struct.unpack(">HH", self.read(4))
        self.pixel = self.read(16)
        self.name = self.read(struct.unpack(">I", self.read(4))[0])
        self.send(struct.pack(">BxH", 2, len(self.encodings)) + b"".join(struct.pack(">i", one) for one in self.encodings))
        return self

    def ask(self, incremental=0):
        self.send(struct.pack(">BBHHHH", 3, incremental, 0, 0, self.width, self.height))

    def message(self, timeout=60):
        """One of the server's: (type, what is of interest)."""
        kind = self.read(1, timeout)[0]
        if kind == 0:
            return 0, [self.rectangle() for _ in range(struct.unpack(">xH", self.read(3))[0])]
        if kind == 2:
            return 2, None
        if kind == 3:
            size = struct.unpack(">3xi", self.read(7))[0]
            return 3, (size, self.read(abs(size)))
        raise AssertionError(f"message of type {kind}")

    def rectangle(self):
        x, y, width, height, encoding = struct.unpack(">HHHHi", self.read(12))
        if encoding == DESKTOP_SIZE:
            self.width, self.height = width, height
            return x, y, width, height, None
        if encoding == EXTENDED_DESKTOP_SIZE:
            self.width, self.height = width, height
            self.read(16 * self.read(4)[0])
            return x, y, width, height, None
        assert encoding == RAW, encoding
        return x, y, width, height, self.read(width * height * 4)

    def picture(self, seconds=30):
        """All of the screen: the server sends it in rectangles, perhaps in several messages."""
        until = time.monotonic() + seconds
        self.ask()
        size = self.width, self.height
        pixels, missing = bytearray(self.width * self.height * 4), self.width * self.height
        while missing > 0:
            assert time.monotonic() < until, f"{missing} pixels have not come"
            kind, found = self.message()
            for x, y, width, height, data in found if kind == 0 else []:
                if data is None and (self.width, self.height) != size:
                    return self.picture(seconds)
                if data is None:
                    continue
                for row in range(height):
                    at = ((y + row) * self.width + x) * 4
                    pixels[at : at + width * 4] = data[row * width * 4 : (row + 1) * width * 4]
                missing -= width * height
            if kind == 0 and missing > 0:  # an update may be of sizes alone; the rest of the screen has changed all the same
                self.ask(1)
        return bytes(pixels)

    def key(self, keysym):
        for down in (1, 0):
            self.send(struct.pack(">BBxxI", 4, down, keysym))

    def type(self, text):
        for letter in text:
            self.key(ord(letter) if ord(letter) < 0x100 else 0x1000000 + ord(letter))

    def erase(self):
        """Control and a, then Delete."""
        for keysym, down in ((0xFFE3, 1), (ord("a"), 1), (ord("a"), 0), (0xFFE3, 0), (0xFFFF, 1), (0xFFFF, 0)):
            self.send(struct.pack(">BBxxI", 4, down, keysym))

    def point(self, x, y, buttons=0):
        self.send(struct.pack(">BBHH", 5, buttons, x, y))

    def click(self, x, y):
        for buttons in (0, 1, 0):
            self.point(x, y, buttons)
            time.sleep(0.05)

    def cut(self, text):
        self.send(struct.pack(">B3xI", 6, len(text)) + text)

    def resize(self, width, height):
        self.send(struct.pack(">BxHHBx", 251, width, height, 1) + struct.pack(">IHHHHI", 0, 0, 0, width, height, 0))
