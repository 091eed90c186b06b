"""The tiers, as far as they can be had without a container: what an outer container would take away is taken away before the
launcher starts. `python3 places.py TIER HOME UID -- COMMAND...` is the wrapper that it is started by.

Each has a PID namespace of its own. T2 has masks over /proc, so that the kernel refuses a fresh one. T0 has Docker's default capabilities and no calls for
namespaces and mounts; T1 has an ordinary user besides. "few capabilities" is T0 with KILL, SETGID and SETUID alone. "no mounts" is T0 where user namespaces can be made, as under an AppArmor profile
that refuses mounts."""

import ctypes
import os
import signal
import struct
import sys

BETWEEN = "workspaces "  # before a tier: attacks from one workspace on another
UID = 61001  # of T1. Nobody's, so that nobody else's processes count against its limits
FEW_CAPABILITIES = (5, 6, 7)  # KILL, SETGID, SETUID
DOCKER_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
NAMESPACE_FLAGS = 0x7E020000
X86 = os.uname().machine == "x86_64"
CLONE = 56 if X86 else 220
# unshare, setns; mount, umount2, pivot_root, and the newer calls for mounts, which have one number everywhere.
NAMESPACES = (272, 308) if X86 else (97, 268)
MOUNTS = ((165, 166, 155) if X86 else (40, 39, 41)) + (428, 429, 430, 431, 432, 433, 442)
LOAD, JUMP, MASK, RETURN, ALLOW, EPERM, ENOSYS = 0x20, 0x15, 0x54, 0x06, 0x7FFF0000, 0x50001, 0x50026
CLONE3 = 435
MS_BIND, CLONE_NEWPID, PR_SET_PDEATHSIG = 4096, 0x20000000, 1


def refusing(numbers, namespaces):
    """A filter, and of how many instructions: as Docker's, or one that lets namespaces be made."""
    rows = [(LOAD, 0, 0, 0)]
    for number in numbers:
        rows += [(JUMP, 0, 1, number), (RETURN, 0, 0, EPERM)]
    rows += [(JUMP, 0, 1, CLONE3), (RETURN, 0, 0, ENOSYS)]
    if not namespaces:
        rows += [(JUMP, 0, 4, CLONE), (LOAD, 0, 0, 16), (MASK, 0, 0, NAMESPACE_FLAGS), (JUMP, 1, 0, 0), (RETURN, 0, 0, EPERM)]
    rows += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *row) for row in rows), len(rows)


def confine(tier, home, uid):
    libc = ctypes.CDLL(None, use_errno=True)

    def must(result):
        if result != 0:
            raise OSError(ctypes.get_errno(), "the place cannot be made")

    if tier == "T2":
        must(libc.mount(b"tmpfs", b"/proc/scsi" if os.path.isdir("/proc/scsi") else b"/proc/irq", b"tmpfs", 1, None))
        return
    # Without a mount namespace of its own a session works in the container's home: here a container would have it.
    must(libc.mount(b"tmpfs", b"/home", b"tmpfs", 0, b"mode=0755"))
    os.mkdir("/home/gem")
    must(libc.mount(home.encode(), b"/home/gem", None, MS_BIND, None))
    code, count = refusing(MOUNTS, True) if tier == "no mounts" else refusing(NAMESPACES + MOUNTS, False)
    program = ctypes.create_string_buffer(code)
    must(libc.prctl(22, 2, struct.pack("=HxxxxxxQ", count, ctypes.addressof(program)), 0, 0))
    kept = FEW_CAPABILITIES if tier == "few capabilities" else DOCKER_CAPABILITIES
    for capability in range(64):
        if capability not in kept and libc.prctl(23, capability, 0, 0, 0) == 1:
            must(libc.prctl(24, capability, 0, 0, 0))
    if tier == "T1":
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        must(libc.prctl(38, 1, 0, 0, 0))


def in_a_container(libc):
    """Goes on as the first process of a PID namespace with a /proc of its own, as an outer container has it: what a launcher of a low
    tier ends by user ids must not be the machine's. This process waits for it and hands signals on."""
    if libc.unshare(CLONE_NEWPID) != 0:
        raise OSError(ctypes.get_errno(), "no PID namespace")
    child = os.fork()
    if child == 0:
        if libc.mount(b"proc", b"/proc", b"proc", 0, None) != 0:
            raise OSError(ctypes.get_errno(), "no /proc")
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: os.kill(child, n))
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def tier(place):
    """The tier that a launcher has there."""
    return "T0" if place in ("no mounts", "few capabilities") else place.removeprefix(BETWEEN)


def wrapper(tier, home, uid=UID):
    if tier == "T3":
        return ()
    return ("unshare", "--mount", "--", sys.executable, os.path.abspath(__file__), tier, str(home), str(uid), "--")


if __name__ == "__main__":
    process = ctypes.CDLL(None, use_errno=True)
    in_a_container(process)
    confine(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    process.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    os.execvp(sys.argv[5], sys.argv[5:])
