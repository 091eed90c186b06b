"""What stands in for the cgroup's freezer: every thread of a session stands still, whatever its first one does."""

import subprocess
import sys
import time

import pytest
from harness import eventually, state_of
from homes_by_hand import ask

BUSY = """
import ctypes, os, signal, sys, threading, time
libc, path = ctypes.CDLL(None, use_errno=True), sys.argv[1]
def work():
    with open(path, "ab", buffering=0) as out:
        while True:
            out.write(b".")
            time.sleep(0.001)
def busy(leader):
    threading.Thread(target=work).start()
    leader()
"""
# The leader of a thread group is in a state of its own; the thread beside it works on.
LEADERS = {
    "sleeps": "busy(signal.pause)",
    "has ended": "busy(lambda: libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0))",
    "is traced": """
child = os.fork()
if child == 0:
    busy(signal.pause)
while os.stat(path).st_size == 0: time.sleep(0.01)
if libc.ptrace(0x4206, child, None, None) or libc.ptrace(0x4207, child, None, None):  # PTRACE_SEIZE, PTRACE_INTERRUPT
    raise OSError(ctypes.get_errno(), "ptrace")
os.waitpid(child, 0x40000000)  # __WALL
signal.pause()
""",
}


def states(root):
    """Of the process and of its children."""
    with open(f"/proc/{root}/task/{root}/children") as children:
        return tuple(state_of(pid) for pid in (root, *children.read().split()))


@pytest.mark.parametrize("leader", LEADERS)
def test_every_thread_is_stopped_and_goes_on(tmp_path, leader):
    marks = tmp_path / "marks"
    marks.touch()
    root = subprocess.Popen([sys.executable, "-c", BUSY + LEADERS[leader], marks])
    try:
        wanted = ("Z",) if leader == "has ended" else ("S", "t") if leader == "is traced" else ("S",)
        eventually(lambda: marks.stat().st_size > 100 and states(root.pid) == wanted, what="the thread works, and its leader does not")
        answer = ask(tmp_path, "stop", root.pid)
        assert "error" not in answer, answer
        stopped = marks.stat().st_size
        time.sleep(0.3)
        assert marks.stat().st_size == stopped
        ask(tmp_path, "continue", answer["left"], root.pid)
        eventually(lambda: marks.stat().st_size > stopped, what="it goes on")
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(root.pid)], check=False)
        root.kill()
        root.wait()
