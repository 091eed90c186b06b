"""A real Chromium with its sandbox on, for an unprivileged user, on a screen of its own where Xvnc is installed; and the socket on which one
client at a time speaks DevTools messages with it. The client gets a session with the browser of its own, which ends with it."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

USER = 12345
FIRST_ID = 2_000_000_000  # of the bridge's own commands
FLAGS = ["--no-first-run", "--no-default-browser-check", "--password-store=basic", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-features=Translate,OptimizationHints,MediaRouter",
         "--site-per-process", "--disable-back-forward-cache", "--window-size=1280,900", "--lang=en-US"]
# Where Chromium expects its pipes.
AT_3_AND_4 = """import fcntl, os, sys
pipes = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 20) for fd in sys.argv[1:3]]
os.dup2(pipes[0], 3), os.dup2(pipes[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])"""


def programs():
    if os.geteuid() != 0:
        pytest.skip("Chromium runs here for another, unprivileged user: that needs root")
    for program in ("chromium", "node", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


class Bridge:
    """Messages between Chromium's pipe and one client of the socket."""

    def __init__(self, path, to_browser, from_browser):
        self.path, self.to_browser, self.from_browser = path, to_browser, from_browser
        self.lock, self.client, self.session, self.own = threading.Lock(), None, None, FIRST_ID
        self.attached = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(4)
        for run in (self.read_browser, self.serve):
            threading.Thread(target=run, daemon=True).start()

    def send(self, message):
        with self.lock:
            self.to_browser.write(json.dumps(message).encode() + b"\0")
            self.to_browser.flush()

    def command(self, method, params):
        self.own += 1
        self.send({"id": self.own, "method": method, "params": params})

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.client = client
            self.attached.clear()
            self.command("Target.attachToBrowserTarget", {})
            self.attached.wait(20)
            try:
                for text in messages(client.makefile("rb", buffering=0)):
                    message = json.loads(text)
                    if "hello" in message:
                        client.sendall(b'{"hello":"ok","client":1,"browser":"0"}\0')
                        continue
                    message.setdefault("sessionId", self.session)
                    self.send(message)
            except (OSError, ValueError):
                pass
            self.client = None
            client.close()
            try:
                self.command("Target.detachFromTarget", {"sessionId": self.session})
            except (OSError, ValueError):
                return  # Chromium has ended

    def read_browser(self):
        try:
            for text in messages(self.from_browser):
                self.from_chromium(json.loads(text))
        except (OSError, ValueError):
            pass
        self.cut()

    def from_chromium(self, message):
        if message.get("id", 0) > FIRST_ID:
            if "sessionId" in message.get("result", {}):
                self.session = message["result"]["sessionId"]
                self.attached.set()
            return
        if "sessionId" not in message:
            return
        if message["sessionId"] == self.session:
            del message["sessionId"]
        if (client := self.client) is not None:
            try:
                client.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\0")  # as Chromium writes it
            except OSError:
                pass

    def cut(self):
        if (client := self.client) is not None:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        self.cut()


def messages(stream):
    rest = []
    while data := stream.read(1 << 16):
        *whole, last = data.split(b"\0")
        for part in whole:
            yield b"".join([*rest, part])
            rest = []
        rest.append(last)


class Screen:
    """Xvnc without a port, or none: then Chromium runs headless."""

    def __init__(self, folder):
        self.process, self.display = None, None
        if shutil.which("Xvnc") is None:
            return
        reader, writer = os.pipe()
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "Xvnc", "-displayfd", str(writer), "-rfbport", "-1", "-rfbunixpath",
             f"{folder}/vnc", "-SecurityTypes", "None", "-nolisten", "tcp", "-ac", "-geometry", "1280x1024"],
            pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"HOME": folder, "PATH": os.environ["PATH"]})
        os.close(writer)
        with os.fdopen(reader) as told:
            number = told.readline().strip()
        assert number, "Xvnc did not start"
        self.display = f":{number}"

    def close(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


class Chromium:
    def __init__(self):
        programs()
        self.folder = tempfile.mkdtemp(prefix="driver-", dir="/tmp")
        self.downloads = pathlib.Path(self.folder, "Downloads")
        profile = pathlib.Path(self.folder, "profile", "Default")
        for place in (self.downloads, profile):
            place.mkdir(parents=True)
        settings = {"download": {"default_directory": str(self.downloads), "prompt_for_download": False}, "profile": {"exit_type": "Normal"}}
        (profile / "Preferences").write_text(json.dumps(settings))
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.folder], check=True)
        self.screen = Screen(self.folder)
        here, there = os.pipe()
        back, forth = os.pipe()
        display = {"DISPLAY": self.screen.display} if self.screen.display else {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_3_AND_4, str(here), str(forth), "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
             "chromium", *FLAGS,
             f"--user-data-dir={self.folder}/profile", "--remote-debugging-pipe", *([] if display else ["--headless=new"]), "about:blank"],
            pass_fds=(here, forth), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": self.folder, "TMPDIR": self.folder, "XDG_RUNTIME_DIR": self.folder, **display})
        os.close(here)
        os.close(forth)
        self.socket = f"{self.folder}/cdp"
        self.bridge = Bridge(self.socket, os.fdopen(there, "wb"), os.fdopen(back, "rb", buffering=0))

    def close(self):
        self.bridge.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self.screen.close()
        shutil.rmtree(self.folder, ignore_errors=True)
