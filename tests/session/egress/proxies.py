"""Little proxies out there, as others run them: HTTP CONNECT with Basic, and SOCKS 5 with user and password."""

import base64
import contextlib
import socket
import struct
import threading


def relay(one, other):
    def copy(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join(60)


class Proxy:
    """Where it leads is up to `places`: {(host, port): (address, port)} in the world's network, or a status, or bytes to be said as they are."""

    def __init__(self, internet, address, port, places, credential=None):
        self.internet, self.places, self.credential = internet, places, credential
        self.asked = []  # (host, port, credential)
        self.heads = []
        internet.serve(address, port, self.handle)

    def answer(self, connection, host, port, credential):
        self.asked.append((host, port, credential))
        if self.credential is not None and credential != self.credential:
            return self.refuse(connection, 407)
        place = self.places.get((host, port), 403)
        if isinstance(place, int):
            return self.refuse(connection, place)
        if isinstance(place, bytes):
            return connection.sendall(place)
        with self.internet.world.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.connect(place)
            self.accept(connection)
            return relay(connection, server)


class HttpProxy(Proxy):
    def handle(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := connection.recv(65536)):
                return
            head += data
        self.heads.append(head.decode())
        lines = head.decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        assert method == "CONNECT", lines
        host, _, port = target.rpartition(":")
        fields = dict(line.split(": ", 1) for line in lines[1:] if line)
        said = fields.get("Proxy-Authorization")
        self.answer(connection, host.strip("[]"), int(port), base64.b64decode(said.removeprefix("Basic ")).decode() if said else None)

    def refuse(self, connection, status):
        connection.sendall(b"HTTP/1.1 %d No\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno" % status)

    def accept(self, connection):
        connection.sendall(b"HTTP/1.0 200 Connection established\r\nProxy-agent: a test\r\n\r\n")


class HttpsProxy(HttpProxy):
    """The same in TLS, by this context."""

    def __init__(self, internet, address, port, places, context, credential=None):
        self.context = context
        super().__init__(internet, address, port, places, credential)

    def handle(self, connection):
        with contextlib.suppress(OSError), self.context.wrap_socket(connection, server_side=True) as tls:
            super().handle(tls)


class SocksProxy(Proxy):
    REPLIES = {403: 2, 502: 5, 504: 6}

    def handle(self, connection):
        def take(size):
            data = b""
            while len(data) < size:
                more = connection.recv(size - len(data))
                if not more:
                    raise OSError("it ended")
                data += more
            return data

        _, count = take(2)
        methods = take(count)
        credential = None
        if self.credential is not None and 2 not in methods:
            return connection.sendall(b"\5\xff")
        if self.credential is not None:
            connection.sendall(b"\5\2")
            user = take(take(2)[1])
            credential = (user + b":" + take(take(1)[0])).decode()
            connection.sendall(b"\1" + (b"\0" if credential == self.credential else b"\1"))
            if credential != self.credential:
                self.asked.append((None, None, credential))
                return None
        else:
            connection.sendall(b"\5\0")
        _, command, _, kind = take(4)
        assert command == 1
        host = take(take(1)[0]).decode() if kind == 3 else socket.inet_ntop(*((socket.AF_INET, take(4)) if kind == 1 else (socket.AF_INET6, take(16))))
        return self.answer(connection, host, struct.unpack(">H", take(2))[0], credential)

    def refuse(self, connection, status):
        connection.sendall(bytes([5, self.REPLIES.get(status, 1), 0, 1]) + bytes(6))

    def accept(self, connection):
        connection.sendall(b"\5\0\0\1" + bytes(6))
