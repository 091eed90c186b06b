"""caisson-cdp with a real Chromium, as an unprivileged user and outside of a session; and a small client of its socket."""

import json
import os
import pathlib
import queue
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD_DIR", ROOT / "build" / "release"))
TOOLS = BUILD / "launcher" / "tools"
CHROMIUM = pathlib.Path("/usr/lib/chromium/chromium")
USER = 1000  # any that is not root: Chromium refuses to be root with its sandbox on
WAIT_S = float(os.environ.get("CAISSON_TEST_WAIT_S", "120"))
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []


def missing():
    """Why these tests cannot run here; None if they can."""
    for program in (CHROMIUM, TOOLS / "caisson-cdp", TOOLS / "caisson-relay"):
        if not program.exists():
            return f"{program.name} is not installed or not built"
    probe = subprocess.run([*AS_USER, "unshare", "--user", "--pid", "--net", "--fork", "true"], capture_output=True)
    return None if probe.returncode == 0 else "this host lets no user make user namespaces, which Chromium's sandbox needs"


def until(fact, what="the fact"):
    """The first true value of `fact()`."""
    late = time.monotonic() + WAIT_S
    while time.monotonic() < late:
        if value := fact():
            return value
        select.select([], [], [], 0.02)
    raise AssertionError(f"{what} did not come about")


class Client:
    """One connection, at the socket itself or through caisson-relay."""

    def __init__(self, place, hello=None, relay=False, timeout=None):
        self.unread, self.last, self.events, self.ended = b"", 0, [], False
        self.timeout = timeout or WAIT_S
        hello = hello or {"hello": "browser"}
        if relay:
            self.process = subprocess.Popen([*AS_USER, place.tool("caisson-relay"), str(place.socket), "--hello", json.dumps(hello)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.in_, self.out = self.process.stdout.fileno(), self.process.stdin.fileno()
        else:
            self.process = None
            self.link = socket.socket(socket.AF_UNIX)
            self.link.connect(str(place.socket))
            self.in_ = self.out = self.link.fileno()
            self.write(json.dumps(hello).encode() + b"\0")
        self.hello = self.read()

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.out, view):]

    def read(self, timeout=None):
        """The next message; None at the end, or when none comes in time."""
        parts, late = [self.unread], time.monotonic() + (timeout or self.timeout)
        while b"\0" not in parts[-1]:
            if not select.select([self.in_], [], [], max(0, late - time.monotonic()))[0]:
                self.unread = b"".join(parts)
                return None
            try:
                part = os.read(self.in_, 1 << 20)
            except ConnectionResetError:
                part = b""
            if not part:
                self.ended = True
                return None
            parts.append(part)
        message, _, self.unread = b"".join(parts).partition(b"\0")
        return json.loads(message)

    def send(self, method, params=None, session=None, **more):
        self.last += 1
        message = {"id": self.last, "method": method, **({"params": params} if params is not None else {}),
                   **({"sessionId": session} if session else {}), **more}
        self.write(json.dumps(message).encode() + b"\0")
        return message["id"]

    def answer(self, number):
        while message := self.read():
            if message.get("id") == number:
                return message
            self.events.append(message)
        raise AssertionError("the connection ended, or no answer came")

    def call(self, method, params=None, session=None):
        answer = self.answer(self.send(method, params, session))
        assert "result" in answer, answer
        return answer["result"]

    def tab(self, url="about:blank"):
        """A tab of its own: target and session."""
        target = self.call("Target.createTarget", {"url": url})["targetId"]
        return target, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def evaluate(self, expression, session=None):
        return self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True}, session)["result"].get("value")

    def pages(self):
        return {t["targetId"]: t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"}

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(WAIT_S)
            self.process.stdout.close()
        else:
            self.link.close()


class Place:
    """A folder of the user's, and caisson-cdp in it once it is started."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-cdp-", dir="/dev/shm"))
        self.folder.chmod(0o755)
        for name in ("caisson-cdp", "caisson-relay"):  # the build's folder need not be open to the user
            shutil.copy(TOOLS / name, self.folder / name)
        for name in ("home", "run"):
            (self.folder / name).mkdir()
            if AS_USER:
                os.chown(self.folder / name, USER, USER)
        self.run = self.folder / "run"
        self.socket, self.profile = self.run / "cdp.sock", self.run / "profile"
        self.process, self.events, self.seen = None, queue.Queue(), []

    def tool(self, name):
        return str(self.folder / name)

    def start(self, *options, extra=("--headless=new",), around=()):
        argv = [*around, *AS_USER, self.tool("caisson-cdp"), "--socket", self.socket, "--profile", self.profile, "--policies",
                self.run / "policies", "--home", self.folder / "home", "--scratch", self.run / "scratch",
                *([] if "--least-filters" in options else ["--least-filters", "1"]), *options, "--", *extra]
        self.process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env={**os.environ, "HOME": str(self.folder / "home"), "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
        threading.Thread(target=self.follow, args=(self.process.stdout,), daemon=True).start()
        return self

    def follow(self, lines):
        for line in lines:
            self.events.put(json.loads(line))
        self.events.put({"event": "eof"})

    def event(self, name):
        """The next event of that name; those before it are kept in `seen`."""
        late = time.monotonic() + WAIT_S
        while True:
            event = self.events.get(timeout=max(0.01, late - time.monotonic()))
            self.seen.append(event)
            if event["event"] == name:
                return event
            assert event["event"] != "eof", f"{name} did not come: {self.seen[-10:]}"

    def say(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")

    def ask_status(self):
        self.say(do="status")
        return self.event("status")

    def client(self, *args, **named):
        return Client(self, *args, **named)

    def processes(self):
        """pid → command line of what runs with this profile."""
        out = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace") if entry.name.isdigit() else ""
            except OSError:
                continue
            if f"--user-data-dir={self.profile}" in line:
                out[int(entry.name)] = line
        return out

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
