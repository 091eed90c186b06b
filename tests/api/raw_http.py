"""HTTP by hand: bytes that no client library would send, and answers read exactly."""
import dataclasses
import json
import select
import socket
import urllib.parse


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)


class Raw:
    """One TCP connection to the server."""

    def __init__(self, url: str, timeout=60.0):
        parts = urllib.parse.urlsplit(url)
        self.host = f"{parts.hostname}:{parts.port}"
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout)
        self.bytes = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes):
        self.socket.sendall(data)

    def more(self) -> bool:
        """Reads once; False at the end of the stream, a reset included."""
        try:
            piece = self.socket.recv(65536)
        except ConnectionError:
            piece = b""
        self.bytes += piece
        return piece != b""

    def until(self, mark: bytes) -> bytes:
        while mark not in self.bytes:
            if not self.more():
                raise EOFError(f"closed after {self.bytes!r}")
        found, self.bytes = self.bytes.split(mark, 1)
        return found

    def exactly(self, size: int) -> bytes:
        while len(self.bytes) < size:
            if not self.more():
                raise EOFError(f"closed after {self.bytes!r}")
        found, self.bytes = self.bytes[:size], self.bytes[size:]
        return found

    def head(self) -> Answer:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        return Answer(int(lines[0].split(" ", 2)[1]), headers, b"")

    def chunk(self) -> bytes:
        size = int(self.until(b"\r\n"), 16)
        data = self.exactly(size)
        assert self.until(b"\r\n") == b""
        return data

    def answer(self, bodiless=False) -> Answer:
        answer = self.head()
        if bodiless or answer.status in (100, 101, 204):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            while piece := self.chunk():
                answer.body += piece
        else:
            answer.body = self.exactly(int(answer.headers["content-length"]))
        return answer

    def closed(self, within=30.0) -> bool:
        """Whether the server ends the connection in that time, without another byte."""
        self.socket.settimeout(within)
        try:
            return not self.more() and self.bytes == b""
        except TimeoutError:
            return False

    def silent(self, seconds=0.3) -> bool:
        return not self.bytes and not select.select([self.socket], [], [], seconds)[0]
