"""Starts a command as on a kernel that lacks something: `python3 without.py nf_tables -- COMMAND...`. What it lacks, nothing below it has."""

import ctypes
import errno
import os
import struct
import sys

AF_NETLINK, NETLINK_NETFILTER = 16, 12
SOCKET = 41 if os.uname().machine == "x86_64" else 198
LOAD, EQUAL, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7FFF0000, 0x50000
NUMBER, FAMILY, PROTOCOL = 0, 16, 32  # offsets in struct seccomp_data
# No socket speaks to the packet filter, as where CONFIG_NETFILTER_NETLINK is not set.
NF_TABLES = [
    (LOAD, 0, 0, NUMBER),
    (EQUAL, 0, 5, SOCKET),
    (LOAD, 0, 0, FAMILY),
    (EQUAL, 0, 3, AF_NETLINK),
    (LOAD, 0, 0, PROTOCOL),
    (EQUAL, 0, 1, NETLINK_NETFILTER),
    (RETURN, 0, 0, ERRNO | errno.EPROTONOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]


def wrapper():
    return [sys.executable, "-I", os.path.abspath(__file__), "nf_tables", "--"]


def take_away():
    """In the process itself, before its exec."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in NF_TABLES))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, struct.pack("=HxxxxxxQ", len(NF_TABLES), ctypes.addressof(code)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter cannot be loaded")


if __name__ == "__main__":
    assert sys.argv[1:3] == ["nf_tables", "--"], sys.argv
    take_away()
    os.execvp(sys.argv[3], sys.argv[3:])
