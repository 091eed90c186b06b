"""The screen of a workspace with a page on it that shows what arrives, and links for a person."""
import shutil

import pytest
from conftest import eventually

FIELD = "data:text/html,<title>t</title><textarea autofocus style='position:fixed;inset:0;width:100%25;height:100%25'></textarea>"
VALUE = "document.querySelector('textarea').value"

needs_desktop = pytest.mark.skipif(any(shutil.which(program) is None for program in ("Xvnc", "openbox", "chromium")),
                                   reason="not installed: Xvnc, openbox or chromium (scripts/setup --desktop)")


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
