"""Xvnc, openbox and Chromium without walls, with the same flags, as another user: what browser.py measures Caisson's against."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "browser/cdp"))
from cdp import AS_USER, CHROMIUM, USER  # noqa: E402

XVNC = ["Xvnc", "-displayfd", "1", "-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp", "-AlwaysShared", "-depth", "24", "-geometry", "1280x1024"]


def wait_for(fact, seconds=60):
    end = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < end
        time.sleep(0.002)
    return found


class BareDesktop:
    """`flags`: Chromium's."""

    def __init__(self, flags):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bare-"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        self.home.mkdir()
        os.chown(self.home, USER, USER)
        self.rfb = self.home / "rfb"
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.programs = []
        server = self.start([*XVNC, "-rfbunixpath", self.rfb], env, stdout=subprocess.PIPE)
        self.display = ":" + server.stdout.readline().decode().strip()
        env["DISPLAY"] = self.display
        self.env = env
        self.start(["openbox", "--sm-disable"], env)
        self.start([CHROMIUM, *flags, f"--user-data-dir={self.home}/profile", "about:blank"], env)
        self.port = wait_for(self.find_port)
        self.address = wait_for(self.answers)

    def start(self, argv, env, stdout=subprocess.DEVNULL):
        self.programs.append(subprocess.Popen([*AS_USER, *map(str, argv)], env=env, stdout=stdout, stderr=subprocess.DEVNULL,
                                              start_new_session=True, cwd="/"))
        return self.programs[-1]

    def find_port(self):
        with contextlib.suppress(OSError, ValueError):
            return int((self.home / "profile/DevToolsActivePort").read_text().split("\n")[0])

    def answers(self):
        with contextlib.suppress(OSError):
            return json.load(self.ask("/json/version"))["webSocketDebuggerUrl"]

    def ask(self, path, method="GET"):
        return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method), timeout=10)

    def pids(self):
        return {one.pid for one in self.programs}

    def close(self):
        for one in reversed(self.programs):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, 9)
            one.wait()
        subprocess.run(["pkill", "-9", "-f", f"user-data-dir={self.home}"], check=False)
        number = self.display[1:]
        for rest in (f"/tmp/.X{number}-lock", f"/tmp/.X11-unix/X{number}"):
            pathlib.Path(rest).unlink(missing_ok=True)
        time.sleep(0.2)
        shutil.rmtree(self.folder, ignore_errors=True)
