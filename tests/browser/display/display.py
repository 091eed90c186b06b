"""Xvnc, caisson-display and a client of X for its tests. Each ends with its `with` block."""
import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import struct
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD_DIR", ROOT / "build/release"))
PROGRAM = pathlib.Path(os.environ.get("CAISSON_DISPLAY", BUILD / "launcher/tools/caisson-display"))
LIMIT = 120.0  # seconds after which a test has failed


def eventually(fact):
    """Waits until fact() is true."""
    late = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < late, "it did not come about"
        time.sleep(0.02)


class Refused(Exception):
    """An error that the worker answers: its code and text."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['text']}")
        self.code, self.text = error["code"], error["text"]


def end(process):
    for stop in (signal.SIGCONT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(stop)
    process.wait()


class Lines:
    """What a program writes, line by line."""

    def __init__(self, stream):
        self.all, self.queue = [], queue.Queue()
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def until(self, wanted):
        """The lines up to the one for which wanted(line) holds, which is the last."""
        found, limit = [], time.monotonic() + LIMIT
        while True:
            line = self.queue.get(timeout=max(0.01, limit - time.monotonic()))
            assert line is not None, f"the program ended; before: {found[-5:]}"
            found.append(line)
            if wanted(line):
                return found


class Xvnc:
    """A display of its own, whose number the server chooses."""

    def __init__(self, size="1280x1024"):
        self.size = size

    def __enter__(self):
        read, write = os.pipe()
        log = subprocess.DEVNULL if "CAISSON_TEST_LOG" not in os.environ else None
        self.process = subprocess.Popen(
            ["Xvnc", "-displayfd", str(write), "-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp", "-geometry", self.size,
             "-depth", "24", "-SendPrimary=0", "-SetPrimary=0"], pass_fds=[write], stdout=subprocess.DEVNULL, stderr=log)
        os.close(write)
        with os.fdopen(read) as stream:
            self.number = int(stream.readline())
        self.name = f":{self.number}"
        return self

    def __exit__(self, *_):
        end(self.process)
        for rest in (f"/tmp/.X{self.number}-lock", f"/tmp/.X11-unix/X{self.number}"):
            pathlib.Path(rest).unlink(missing_ok=True)


class Worker:
    """caisson-display; call() and ask() speak its protocol."""

    def __init__(self, display, *options):
        self.command = [str(PROGRAM), "--display", display, *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.last, self.answers, self.came = 0, {}, threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        end(self.process)
        for stream in (self.process.stdin, self.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()

    def read(self):
        out = self.process.stdout
        while len(length := out.read(4)) == 4:
            head = json.loads(out.read(struct.unpack("<I", length)[0]))
            body = out.read(head.pop("bytes", 0))
            with self.came:
                self.answers[head.pop("id")] = (head, body)
                self.came.notify_all()
        with self.came:
            self.answers[None] = None
            self.came.notify_all()

    def ask(self, op, body=b"", **members):
        """Sends it; the number by which its answer is known."""
        self.last += 1
        head = json.dumps({"id": self.last, "op": op, **({"bytes": len(body)} if body else {}), **members}).encode()
        self.process.stdin.write(struct.pack("<I", len(head)) + head + body)
        self.process.stdin.flush()
        return self.last

    def answer(self, number):
        with self.came:
            assert self.came.wait_for(lambda: number in self.answers or None in self.answers, LIMIT), f"no answer to {number}"
            assert number in self.answers, f"the worker ended: {self.process.stderr.read().decode()}"
            head, body = self.answers.pop(number)
        if "error" in head:
            raise Refused(head["error"])
        return head, body

    def call(self, op, body=b"", **members):
        return self.answer(self.ask(op, body, **members))

    def act(self, action, body=b"", **members):
        return self.call("action", body, action=action, **members)[0]

    def type(self, text, **members):
        return self.act("TYPING", text.encode(), **members)

    def ended(self):
        """Its exit status and what it said."""
        return self.process.wait(LIMIT), self.process.stderr.read().decode()


class Client:
    """tests/browser/x_client.c: what another program sees."""

    def __init__(self, display, program):
        self.display, self.program = display, program

    def __enter__(self):
        self.process = subprocess.Popen([self.program], env={**os.environ, "DISPLAY": self.display}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.lines = Lines(self.process.stdout)
        self.lines.until("ready".__eq__)
        self.say("ping")
        return self

    def __exit__(self, *_):
        end(self.process)

    def say(self, command):
        """Gives a command; what came before it was carried out."""
        self.process.stdin.write(command + "\n")
        return self.lines.until(command.split()[0].__eq__)[:-1]

    def events(self):
        """What happened since, as tuples of words. X has delivered it: the answer to the action came after that."""
        return [tuple(line.split()) for line in self.say("ping")]

    def spare(self, bind=0):
        """How many keys have no keysym, after so many of them were bound."""
        return int(self.say(f"spare {bind}")[-1].split()[1])

    def pasted(self):
        line = self.lines.until(lambda line: line.startswith("paste "))[-1]
        return bytes.fromhex(line.split()[1]).decode() if line != "paste none" else None

    def clipboard(self):
        self.process.stdin.write("read\n")
        words = self.lines.until(lambda line: line.startswith("clip"))[-1].split()
        return bytes.fromhex("".join(words[1:])).decode() if words != ["clip", "none"] else None


def keysym_characters():
    """Which character an older keysym stands for, from the header that defines them."""
    header = pathlib.Path("/usr/include/X11/keysymdef.h")
    found = {0xFF0D: "\n", 0xFF09: "\t"}
    for line in header.read_text().splitlines() if header.exists() else []:
        words = line.replace("(", "").split()
        if line.startswith("#define XK_") and "/* U+" in line:
            found.setdefault(int(words[2], 16), chr(int(words[4][2:], 16)))
    return found


def typed(events, older={}):
    """The text that key presses gave."""
    older = older or keysym_characters()
    out = ""
    for event in events:
        if event[:2] == ("key", "press"):
            keysym = int(event[3], 16)
            if keysym in older:
                out += older[keysym]
            elif keysym >> 24 == 1 or 0x20 <= keysym < 0x100:
                out += chr(keysym & 0xFFFFFF)
    return out


def compile_client(folder):
    """The client's program; None where it cannot be made, for want of a compiler or of libxcb's headers."""
    out = folder / "x_client"
    source = pathlib.Path(__file__).with_name("x_client.c")
    if shutil.which("cc") is None:
        return None
    done = subprocess.run(["cc", "-O1", str(source), "-lxcb", "-o", str(out)], capture_output=True, check=False)
    return str(out) if done.returncode == 0 else None
