"""stdin of a command of /v1/bash. The server takes text and refuses what does not fit; a lone ^D (\\x04) means its end."""
from __future__ import annotations

import codecs
import os
import signal

from .failure import ABSENT, FAILED, Failure
from .output import say

PIECE = 64 * 1024
END = "\x04"


def close(client, place: dict):
    try:
        client.data("POST", "/v1/bash/write", {**place, "input": END})
    except Failure as why:
        if why.code != FAILED:  # it has ended already
            raise


def write(client, place: dict, text: str, over) -> bool:
    """Until it fits, and the server is there; false: the command takes no more. What may have arrived is not sent again."""
    pause = 0.02
    while not over.is_set():
        try:
            client.data("POST", "/v1/bash/write", {**place, "input": text})
            return True
        except Failure as why:
            if not why.unsent and (why.code != FAILED or "does not read" not in why.text):
                if why.code not in (FAILED, ABSENT) and not over.is_set():
                    say(f"stdin: the rest was not sent: {why.text}")
                return False
        over.wait(pause)
        pause = min(pause * 2, 1.0)
    return False


def feed(client, place: dict, over):
    """Runs in a thread of its own, which the program's end does not wait for."""
    # A signal that this thread took would not wake the other one from its wait for the server.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        held, content = "", b"x"
        while content and not over.is_set():
            content = os.read(0, PIECE)
            text = held + decoder.decode(content, not content)
            # A piece that is nothing but ^D would end the input.
            held = text if text == END else ""
            if text and not held and not write(client, place, text, over):
                return
        if held:
            say("stdin: the last ^D was not sent: by itself it is the end of the input")
    except UnicodeDecodeError:
        say("stdin is not UTF-8 text, and the command got no more of it: send the file by `aio files put`")
    except OSError:
        pass  # a stdin that cannot be read has nothing
    try:
        close(client, place)
    except Failure:
        pass
    finally:
        client.close()
