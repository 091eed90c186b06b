"""DNS for the tests: questions as clients ask them, and a server of the outside that answers what a test says, by UDP and TCP."""

import contextlib
import socket
import struct
import threading

A, PTR, AAAA, HTTPS = 1, 12, 28, 65


def wire(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def question(name, type_=A, number=77, flags=0x100):
    return struct.pack(">HHHHHH", number, flags, 1, 0, 0, 0) + wire(name) + struct.pack(">HH", type_, 1)


def skip_name(message, at):
    while message[at] and message[at] < 0xC0:
        at += 1 + message[at]
    return at + (2 if message[at] else 1)


def text_at(message, at):
    labels = []
    while message[at]:
        if message[at] >= 0xC0:
            at = struct.unpack(">H", message[at : at + 2])[0] & 0x3FFF
            continue
        labels.append(message[at + 1 : at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels)


def addresses_in(message):
    """(code, what the answers hold): addresses, or names of PTR."""
    _, flags, questions, answers, _, _ = struct.unpack(">HHHHHH", message[:12])
    at, out = 12, []
    for _ in range(questions):
        at = skip_name(message, at) + 4
    for _ in range(answers):
        at = skip_name(message, at)
        type_, _, _, size = struct.unpack(">HHIH", message[at : at + 10])
        data = message[at + 10 : at + 10 + size]
        if type_ in (A, AAAA):
            out.append(socket.inet_ntop(socket.AF_INET if type_ == A else socket.AF_INET6, data))
        elif type_ == PTR:
            out.append(text_at(message, at + 10))
        at += 10 + size
    return flags & 15, out


class NameServer:
    """zone: name -> list of addresses, or a function that gives one for each question. A name with no entry does not exist."""

    def __init__(self, datagrams, listener):
        self.zone, self.asked, self.truncate, self.silent, self.mangle = {}, [], False, False, None
        self.datagrams, self.listener = datagrams, listener
        datagrams.bind(listener.getsockname())
        datagrams.settimeout(None)
        for run in (self.by_udp, self.by_tcp):
            threading.Thread(target=run, daemon=True).start()

    def answer(self, message, truncated=False):
        end = skip_name(message, 12)
        name, (type_,) = text_at(message, 12), struct.unpack(">H", message[end : end + 2])
        self.asked.append((name, type_))
        entry = self.zone.get(name)
        found = entry() if callable(entry) else entry
        records = b""
        of_type = [a for a in found or [] if (":" in a) == (type_ == AAAA)]
        for address in [] if truncated else of_type:
            data = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
            records += b"\xc0\x0c" + struct.pack(">HHIH", type_, 1, 1, len(data)) + data
        flags = 0x8180 | (0x200 if truncated else 0) | (0 if entry is not None else 3)
        count = 0 if truncated else len(of_type)
        return message[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + message[12 : end + 4] + records

    def by_udp(self):
        with contextlib.suppress(OSError):
            while True:
                message, peer = self.datagrams.recvfrom(4096)
                if not message:  # close() has ended the socket
                    return
                if self.silent:
                    continue
                answer = self.answer(message, self.truncate)
                if self.mangle:
                    for wrong in self.mangle(answer):
                        self.datagrams.sendto(wrong, peer)
                self.datagrams.sendto(answer, peer)

    def by_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with contextlib.suppress(OSError), connection:
                    message = connection.recv(4096)
                    answer = self.answer(message[2:])
                    connection.sendall(struct.pack(">H", len(answer)) + answer)

    def close(self):
        for made in (self.datagrams, self.listener):
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()
