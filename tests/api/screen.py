"""The screen of a workspace with a page on it that shows what arrives, and links for a person."""
import contextlib
import pathlib
import shutil

import pytest
from conftest import eventually

FIELD = "data:text/html,<title>t</title><textarea autofocus style='position:fixed;inset:0;width:100%25;height:100%25'></textarea>"
VALUE = "document.querySelector('textarea').value"

needs_desktop = pytest.mark.skipif(any(shutil.which(program) is None for program in ("Xvnc", "openbox", "chromium")),
                                   reason="not installed: Xvnc, openbox or chromium (scripts/setup --desktop)")


def processes(native):
    """pid -> command line, of all below the launcher."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if line and native.owns(int(entry.name)):
                found[int(entry.name)] = line
        except OSError:  # it ended meanwhile
            continue
    return found


@contextlib.contextmanager
def serving(api, port, folder="~"):
    """A web server of the workspace for this folder of its own."""
    started = api.data("/v1/bash/exec", {"command": f"cd {folder} && exec python3 -m http.server --bind 127.0.0.1 {port}", "async_mode": True})
    eventually(lambda: api.bash(f"exec 3<>/dev/tcp/127.0.0.1/{port}")["exit_code"] == 0)
    yield f"http://127.0.0.1:{port}"
    api.post("/v1/bash/kill", {"session_id": started["session_id"]})


def open_field(api):
    """A page that is one text field with the focus; the answer says what was typed there."""
    assert api.post("/v1/browser/page/navigate", {"url": FIELD}).json()["success"]
    api.post("/v1/browser/page/click", {"selector": "textarea"})
    return lambda: api.post("/v1/browser/page/evaluate", {"expression": VALUE}).json()["data"]


def take_over(api, **fields):
    answer = api.post("/v1/browser/takeover", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def act(api, kind, **fields):
    assert api.post("/v1/browser/actions", {"action_type": kind, **fields}).json()["success"]


def typed_anew(erase, type_it, field):
    """What is in the field after that. A letter gets a key when it is first typed, and a program that has not heard of it may miss it then."""
    erase()
    eventually(lambda: field() == "")
    type_it()
    eventually(lambda: field().endswith("!"))
    return field()


def copy_on_screen(api, text):
    """Types it into the field, and copies it there."""
    act(api, "TYPING", text=text)
    for key in ("a", "c"):
        act(api, "HOTKEY", keys=["ctrl", key])
