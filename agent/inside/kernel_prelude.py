"""Runs in the kernel before its first cell.

Output of C code and child processes on descriptors 1 and 2 comes through a pipe that a thread of ipykernel reads. A cell is over when
that pipe is empty and the thread sleeps in its read; otherwise its last lines would belong to no cell. The thread may have read them and
wait for the interpreter's lock, so it must have slept once more since the last look.
A program that prints faster than the bridge reads has to wait: ipykernel would keep all of its output in memory, and its socket would
then lose messages, including the one about the cell's end."""
import array
import fcntl
import sys
import termios
import threading
import time
import warnings

import zmq
from IPython import get_ipython
from ipykernel.iostream import OutStream


def paced(self, string, write=OutStream.write):
    done = write(self, string)
    self.unsent = getattr(self, "unsent", 0) + len(string)
    if self.unsent > 1 << 18:
        self.unsent = 0
        sender = self.pub_thread.thread
        if sender.is_alive() and threading.current_thread() is not sender:
            sent = threading.Event()
            self.pub_thread.schedule(self._flush)
            self.pub_thread.schedule(sent.set)
            sent.wait(10)
        else:
            self._flush()
    return done


OutStream.write = paced


def pace_socket():
    thread.socket.setsockopt(zmq.SNDHWM, 64)
    thread.socket.setsockopt(zmq.XPUB_NODROP, 1)
    is_paced.set()


thread, is_paced = get_ipython().kernel.iopub_socket.io_thread, threading.Event()
thread.schedule(pace_socket)
if not is_paced.wait(10):
    raise RuntimeError("its output cannot be paced")


def reader(stream):
    try:
        with open("/proc/self/task/%d/status" % stream.watch_fd_thread.native_id) as file:
            text = file.read()
        return text[text.index("State:"):].split()[1], text[text.index("\nvoluntary_ctxt_switches:"):].split()[1]
    except (OSError, ValueError):
        return None


seen = {}


def settle(*_):
    for stream in (sys.stdout, sys.stderr):
        fd = getattr(stream, "_fid", None)
        if fd is None or getattr(stream, "_exc", None):
            continue
        left, empty = array.array("i", [0]), 0
        for _ in range(400):
            fcntl.ioctl(fd, termios.FIONREAD, left)
            now = reader(stream)
            empty += left[0] == 0
            if left[0] == 0 and now and now[0] == "S" and now == seen.get(fd) or empty > (100 if now else 1):
                break
            seen[fd] = now
            time.sleep(0.0005 if now else 0.002)


warnings.filterwarnings("ignore", message=".*dhist requires you to install")  # %cd, where IPython has no place for its directories
get_ipython().events.register("post_execute", settle)
