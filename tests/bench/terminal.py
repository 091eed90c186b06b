"""terminal.py URL KEY [KEYS]: how long a key takes from a client of /v1/shell/ws to its echo by the shell's line editor, with acknowledgements
and without; quiet, and beside another terminal that floods. In the same moments the floor: a bash at a terminal of this very process."""
import base64
import json
import os
import pty
import socket
import struct
import sys
import time
import urllib.parse

from latency import held, quantile

url, key = sys.argv[1], sys.argv[2]
KEYS, TARGET_MS = int(sys.argv[3]) if len(sys.argv) > 3 else 500, 5.0
server = urllib.parse.urlsplit(url)


class Terminal:
    """Blocking, without a library, whose own time would be measured."""

    def __init__(self, query=""):
        self.socket = socket.create_connection((server.hostname, server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = [f"GET /v1/shell/ws?api_key={key}{query} HTTP/1.1", f"Host: {server.netloc}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline().strip():
            pass

    def send(self, kind, data):
        text = json.dumps({"type": kind, "data": data}).encode()
        assert len(text) < 126
        self.socket.sendall(struct.pack("!BBI", 0x81, 0x80 | len(text), 0) + text)

    def output(self) -> str:
        while True:
            kind, size = self.file.read(2)
            if size == 126:
                size, = struct.unpack("!H", self.file.read(2))
            elif size == 127:
                size, = struct.unpack("!Q", self.file.read(8))
            message = json.loads(self.file.read(size)) if kind == 0x81 else self.file.read(size) and {}
            if message.get("type") == "output":
                if "offset" in message:
                    self.send("ack", {"offset": message["offset"]})
                return message["data"]

    def until(self, text):
        seen = ""
        while text not in seen:
            seen += self.output()

    def type(self, one):
        self.send("input", one)
        self.until(one)


class Floor:
    def __init__(self):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        while b"$ " not in os.read(self.fd, 4096) and os.geteuid():
            pass

    def type(self, one):
        os.write(self.fd, one.encode())
        while one.encode() not in os.read(self.fd, 4096):
            pass


def measure(name, terminal):
    took = []
    for number in range(KEYS):
        if number % 50 == 49:  # a new line
            terminal.type("\r" if isinstance(terminal, Floor) else "\n")
        begin = time.monotonic()
        terminal.type("abcdefghij"[number % 10])
        took.append((time.monotonic() - begin) * 1e3)
        time.sleep(0.002)
    p50 = quantile(took, 0.5)
    print(f"echo, {name:32} median {p50:6.2f} ms   p99 {quantile(took, 0.99):6.2f} ms   {held(p50, TARGET_MS)}")


floor, plain, flow = Floor(), Terminal(), Terminal("&flow=1")
for one in (plain, flow):
    one.until("$ ")
measure("the floor", floor)
measure("a client of old", plain)
measure("with acknowledgements", flow)
flood = Terminal()
flood.until("$ ")
flood.send("input", "yes flood\r")
measure("beside a flood", flow)
flood.socket.close()
