"""What the tests of /v1/jupyter share: a cell's answer, the native launchers that they need, and where they cannot run."""
import json
import subprocess

import pytest

# Of the sessions' own interpreter, which is Debian's; the tests' interpreter may be another.
INSTALLED = subprocess.run(["/usr/bin/python3", "-I", "-c", "import ipykernel, jupyter_client"], capture_output=True, check=False).returncode == 0
needs_kernel = pytest.mark.skipif(not INSTALLED, reason="python3-ipykernel and python3-jupyter-client are not installed (scripts/setup --test)")

# IPython where pickleshare is not installed, as in Debian 13: it warns of what it does not remember.
FORGETFUL = """
class Forgetful(dict):
    def __setitem__(self, key, value):
        import warnings
        warnings.warn(f"This is now an optional IPython functionality, setting {key} requires you to install the `pickleshare` library.")
get_ipython().db = Forgetful()
"""


def tighter(**limits):
    """policies: the domain jupyter with smaller limits."""
    def change(folder):
        file = folder / "jupyter.json"
        policy = json.loads(file.read_text())
        policy["limits"] |= limits
        policy["weaken"] = [w for w in policy["weaken"] if w["field"].split("/")[-1] not in limits]
        file.write_text(json.dumps(policy))
    return change


class Cells:
    """Runs cells in one session."""

    def __init__(self, api, session=None):
        self.api, self.session = api, session

    def whole(self, code, **fields):
        if self.session:
            fields.setdefault("session_id", self.session)
        answer = self.api.post("/v1/jupyter/execute", {"code": code, **fields}, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, code, **fields) -> dict:
        body = self.whole(code, **fields)
        assert body["success"] is True, body
        self.session = self.session or body["data"]["session_id"]
        return body["data"]

    def value(self, code, **fields) -> str:
        """What the cell's last expression was."""
        done = self.run(code, **fields)
        assert done["status"] == "ok", done
        return done["outputs"][-1]["data"]["text/plain"]

    def printed(self, code, name="stdout", **fields) -> str:
        return text_of(self.run(code, **fields), name)


def text_of(done, name="stdout") -> str:
    return "".join(o["text"] for o in done["outputs"] if o["output_type"] == "stream" and o["name"] == name)


def error_of(done) -> dict:
    errors = [o for o in done["outputs"] if o["output_type"] == "error"]
    assert len(errors) == 1, done
    return errors[0]
