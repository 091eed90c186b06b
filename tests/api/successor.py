"""What tests of agents that follow one another share: the kill of one, and what a client does around it."""
import os
import signal
import threading
import time

import httpx
from conftest import eventually


def kill_agent(here):
    """Returns when another one answers."""
    before = here.agent_pid
    os.kill(before, signal.SIGKILL)
    eventually(lambda: now_serving(here, before))


def agent_or_none(here):
    try:
        return here.agent_pid
    except AssertionError:
        return None


def now_serving(here, before):
    try:
        return here.agent_pid != before and httpx.get(here.url + "/readyz", timeout=5).status_code == 200
    except (AssertionError, httpx.TransportError):
        return False


def start(client, command, session=None, **more):
    made = session or client.data("/v1/bash/sessions/create")["session_id"]
    got = client.data("/v1/bash/exec", {"session_id": made, "command": command, "async_mode": True, **more})
    return made, got["command_id"]


def whole_output(client, session, command, seconds=180):
    """Both streams from the first byte, once it is over, read by offset; and what is said of it."""
    out, err, asked = "", "", {"session_id": session, "command_id": command, "wait": True, "wait_timeout": 2}
    end = time.monotonic() + seconds
    while True:
        got = client.data("/v1/bash/output", asked)
        out, err = out + got["stdout"], err + got["stderr"]
        asked |= {"offset": got["offset"], "stderr_offset": got["stderr_offset"]}
        if got["command"]["status"] not in ("pending", "running") and not got["stdout"] and not got["stderr"]:
            return out, err, got["command"]
        assert time.monotonic() < end, got["command"]


def cell(client, session, code, **more):
    return client.data("/v1/jupyter/execute", {"session_id": session, "code": code, **more})


def printed(got):
    return "".join(o.get("text", "") for o in got["outputs"] if o["output_type"] == "stream")


def in_the_background(call):
    """A request whose connection the kill closes."""
    def run():
        try:
            call()
        except httpx.TransportError:
            pass
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
