"""stdin of a command of /v1/bash. The server takes text and refuses what does not fit; a lone ^D (\\x04) means its end."""
from __future__ import annotations

import codecs
import os
import signal
import threading

from .call import quoted
from .failure import ABSENT, FAILED, Failure

PIECE = 64 * 1024
END = "\x04"


def close(client, place: dict):
    try:
        client.data("POST", "/v1/bash/write", {**place, "input": END})
    except Failure as why:
        if why.code != FAILED:  # it has ended already
            raise


class Feeding:
    """stdin on its way to a command, in a thread that the program's end does not wait for. Input that cannot be passed on ends the command:
    half of it with an end behind it would look like all of it. `failed` says why."""

    def __init__(self, client, place: dict):
        self.client, self.place = client, place
        self.over, self.failed = threading.Event(), ""

    def start(self):
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        # A signal that this thread took would not wake the other one from its wait for the server.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            try:
                self.failed = self.pass_on()
            except Failure as why:
                self.failed = f"stdin could not be passed on: {why.text}"
            if self.failed:  # a command whose input is lost would wait for it for ever
                self.client.outlast("POST", f"/v1/bash/sessions/{quoted(self.place['session_id'])}/close", {})
        except Failure:
            pass  # the other thread meets it, too
        finally:
            self.client.close()

    def pass_on(self) -> str:
        """Why it could not be; "" at its end, or that of the command."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        held, content = "", b"x"
        while content and not self.over.is_set():
            try:
                content = os.read(0, PIECE)
                text = held + decoder.decode(content, not content)
            except UnicodeDecodeError:
                return "stdin is not UTF-8 text, so the command was ended: send the file by `aio files put`"
            except OSError as why:
                return f"stdin: {why.strerror}"
            # A piece that is nothing but ^D would end the input.
            held = text if text == END else ""
            if text and not held and not self.write(text):
                return ""
        if held:
            return "stdin is, or ends with, a ^D by itself, which cannot be told from its end"
        if not self.over.is_set():
            close(self.client, self.place)
        return ""

    def write(self, text: str) -> bool:
        """Until it fits, and the server is there; false: the command has ended. What may have arrived is not sent again."""
        pause = 0.02
        while not self.over.is_set():
            try:
                self.client.data("POST", "/v1/bash/write", {**self.place, "input": text})
                return True
            except Failure as why:
                if not why.unsent and (why.code != FAILED or "does not read" not in why.text):
                    if why.code in (FAILED, ABSENT):
                        return False
                    raise
            self.over.wait(pause)
            pause = min(pause * 2, 1.0)
        return False
