"""The page driver as the agent runs it: frames over its stdin and stdout."""
import itertools
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# An operation that succeeds may be slow: a busy machine is not a failure.
SLOW_MS = int(os.environ.get("CAISSON_TEST_SLOW_MS", "120000"))
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD_DIR", ROOT / "build/release"))


def installed():
    """The folder with the driver and its libraries, as scripts/lib/driver.sh makes it, and why it is not there."""
    folder = pathlib.Path(os.environ.get("CAISSON_DRIVER", BUILD / "launcher/tools/driver"))
    return folder, None if (folder / "node_modules").is_dir() else f"{folder} has no libraries (scripts/test browser installs them from npm)"


def node():
    """Node.js for it: its own, where there is one."""
    own = installed()[0] / "bin/node"
    return str(own) if own.exists() else "node"


class Answer(dict):
    """The head of an answer; data is that of the body where the head says so."""

    def __init__(self, head, body):
        super().__init__(head)
        self.body = body
        if head.get("body") == "data":
            self["data"] = json.loads(body)

    @property
    def data(self):
        assert self["ok"], self.get("message")
        return self["data"]

    @property
    def hint(self):
        return self.get("hint", "")


class Driver:
    def __init__(self, socket):
        folder, problem = installed()
        if problem:
            pytest.skip(problem)
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([folder / "page_driver", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.ids, self.answers, self.news = itertools.count(1), {}, threading.Condition()
        self.ended = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        out = self.process.stdout
        while len(size := out.read(4)) == 4:
            head = json.loads(out.read(struct.unpack("<I", size)[0]))
            body = out.read(head.get("bytes", 0))
            with self.news:
                self.answers[head["id"]] = Answer(head, body)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def send(self, op, body=b"", request=None, **members):
        request = next(self.ids) if request is None else request
        head = {"id": request, "op": op, **members, **({"bytes": len(body)} if body else {})}
        text = json.dumps(head).encode()
        self.process.stdin.write(struct.pack("<I", len(text)) + text + body)
        self.process.stdin.flush()
        return request

    def answer(self, request, limit=3600):
        with self.news:
            assert self.news.wait_for(lambda: request in self.answers or self.ended, limit), f"no answer within {limit} s"
            assert request in self.answers, f"the driver has ended: {self.stderr()}"
            return self.answers.pop(request)

    def __call__(self, op, body=b"", timeout_ms=SLOW_MS, **members):
        return self.answer(self.send(op, body, timeout_ms=timeout_ms, **members))

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait(10)
        self.errors.close()
