"""Sessions by the API, with the calls of control.Control that the runner needs: in T1 there is no control socket, for sessions have
the launcher's uid there and could use it."""

import json
import shlex
import urllib.error
import urllib.request

from harness import API_KEY, Refused


class OverHttp:
    def __init__(self, launcher):
        self.launcher, self.url = launcher, f"http://127.0.0.1:{launcher.port}"
        self.hello = {"tier": self.request("/v1/attestation")["statement"]["tier"]}

    def request(self, path, body=None, timeout=280):
        request = urllib.request.Request(self.url + path, headers={"X-AIO-API-Key": API_KEY, "Content-Type": "application/json"})
        if body is not None:
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout) as answer:
                envelope = json.load(answer)
        except urllib.error.HTTPError as e:
            raise Refused({"code": str(e.code), "what": e.read().decode(errors="replace")}) from None
        if not envelope["success"]:
            raise Refused({"code": "failed", "what": envelope["message"]})
        return envelope["data"]

    def create(self, domain="bash"):
        if domain != "bash":
            raise Refused({"code": "unavailable", "what": f"the API gives no session of domain {domain}"})
        return self.request("/v1/bash/sessions/create", {})["session_id"]

    def exec(self, session, argv, **more):
        return self.request("/v1/bash/exec", {"session_id": session, "command": "exec " + shlex.join(map(str, argv)), **more})

    def start(self, session, *argv):
        return self.exec(session, argv, async_mode=True)["command_id"], None

    def run(self, session, *argv):
        done = self.exec(session, argv, timeout=240, max_output_length=8 << 20)
        return {"exit_code": done["exit_code"], "reason": done["status"]}, done["stdout"] or "", done["stderr"] or ""

    def output(self, session, *argv):
        ended, out, err = self.run(session, *argv)
        assert ended["exit_code"] == 0, f"{argv}: {ended}\n{out}\n{err}"
        return out

    def call(self, op, session=None):
        if op == "session_list":
            listed = [s["session_id"] for s in self.request("/v1/bash/sessions") if s["status"] == "ready"]
            return {"sessions": [{"session": name} for name in listed if self.runs(name)]}, []
        assert op == "attest"
        return self.request(f"/v1/sessions/{session}/confinement"), []

    def runs(self, session):
        """Asked of the launcher: the API may not have heard of an end yet."""
        try:
            return bool(self.call("attest", session=session))
        except Refused:
            return False

    def event(self, kind, session):
        """Why a session ended; the API's own names of sessions are not the launcher's, so the last one that it ended."""
        ended = [r["reason"] for r in self.launcher.records() if r["event"] == kind and r["reason"] != "destroyed"]
        return {"session": session, "reason": ended[-1] if ended else None}

    def destroy(self, session):
        self.request(f"/v1/bash/sessions/{session}/close", {})
