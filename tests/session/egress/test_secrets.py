"""Secrets that a policy binds: sessions of a launcher use them at their host, and have placeholders."""

import json
import os
import pathlib
import shutil
import signal

import places
import pytest
import shelf
from bound import BEARER, URL, placeholder, run, used
from connected import REQUIRED, process
from harness import edit, eventually
from opening import TOKEN, server_context
from outgoing import records
from test_clients import JAVA

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")


@pytest.fixture
def control(bound):
    one = bound.start()
    if one.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace: see the test of that tier")
    return one


def test_a_session_uses_what_it_does_not_have(bound, control):
    session = control.create()
    held = placeholder(control, session)
    assert held.startswith("caisson-placeholder-token-")
    said = run(control, session, BEARER)
    assert said.startswith("you sent GET /x") and used(bound) and held not in bound.heads[0]
    assert TOKEN not in said and "*" * len(TOKEN) in said
    eventually(lambda: records(bound.launcher, "egress_connection", via="opened", secrets=["token"], workspace="default"), 10, "its use is on record")
    assert TOKEN not in json.dumps(bound.launcher.records()) and TOKEN not in json.dumps(bound.launcher.records(session))


def test_nothing_of_a_session_shows_it(bound, control):
    session = control.create()
    run(control, session, BEARER)
    assert TOKEN not in run(control, session, f"env; cat {bound.file} /proc/*/environ; grep -ras {TOKEN[:8]} /run /etc /tmp --exclude-dir=proc")
    assert "No such file" in run(control, session, f"ls {bound.file.parent}")


def test_a_placeholder_elsewhere_is_refused_and_on_record(bound, control):
    session = control.create()
    assert "placeholder_elsewhere" in run(control, session, f'curl -sS --max-time 60 -H "X-Copy: $API_TOKEN" {URL}')
    assert bound.heads == []
    eventually(lambda: records(bound.launcher, "egress_refused", refusal="placeholder_elsewhere", secrets=["token"]), 10, "the alarm is on record")


def test_a_reload_revokes_it(bound, control):
    session = control.create()
    run(control, session, BEARER)
    assert used(bound)
    edit(bound.launcher.policies / "bash.json", secrets=[])
    bound.launcher.reload()
    later = lambda: (run(control, session, BEARER), bound.heads[-1])[1]  # noqa: E731
    eventually(lambda: "Bearer caisson-placeholder-token-" in later(), 60, "the server sees what the session has")
    assert placeholder(control, control.create()) == ""


def test_a_newer_secret_is_read(bound, control):
    session = control.create()
    bound.file.write_text("another-secret-0000000000")
    eventually(lambda: (run(control, session, BEARER), "another-secret-0000000000" in "".join(bound.heads))[1], 60, "it is used")


@pytest.mark.parametrize("gone", [pathlib.Path.unlink, lambda file: file.write_text("")], ids=["deleted", "emptied"])
def test_a_secret_that_is_gone_is_refused(bound, control, gone):
    session = control.create()
    assert run(control, session, BEARER).startswith("you sent")
    gone(bound.file)
    eventually(lambda: "placeholder_unbound" in run(control, session, BEARER), 60, "it is not used any more")
    bound.file.write_text("another-secret-0000000000")
    eventually(lambda: (run(control, session, BEARER), "another-secret-0000000000" in bound.heads[-1])[1], 60, "a new one is")


def test_a_host_that_is_bound_later_is_believed_too(bound, control):
    """The certificate of the authority is a newer one then, in the file that sessions have mounted already."""
    session = control.create()
    run(control, session, BEARER)
    bound.context = server_context(bound.folder, bound.by, "later.test")
    edit(bound.launcher.policies / "bash.json", secrets=[bound.secret, {**bound.secret, "name": "later", "host": "later.test", "env": "LATER"}])
    bound.launcher.reload()
    held = lambda: control.output(control.create(), "/bin/sh", "-c", 'printf %s "$LATER"')  # noqa: E731
    held = held()
    assert held.startswith("caisson-placeholder-later-")
    eventually(lambda: run(control, session, f"curl -sS --max-time 60 -H 'Authorization: Bearer {held}' https://later.test/").startswith("you sent"), 60, "")
    assert used(bound)


def test_an_opener_that_is_started_anew_is_believed(bound, control):
    session = control.create()
    run(control, session, f"cp $SSL_CERT_FILE $HOME/before.pem; {BEARER}")  # for a program that has read the file before
    os.kill(records(bound.launcher, "egress_start", process="opener")[-1]["pid"], signal.SIGKILL)
    eventually(lambda: len(records(bound.launcher, "egress_start", process="opener")) == 2, 60, "another one runs")
    again = BEARER.replace("curl", "curl --cacert $HOME/before.pem")
    eventually(lambda: run(control, session, again).startswith("you sent"), 60, "the key is the same")


CLIENTS = {
    "python": "/usr/bin/python3 -I -c 'import urllib.request as u; print(u.urlopen(\"https://api.test/x\", timeout=60).read().decode())'",
    "openssl": "printf 'GET /x HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -servername api.test"
    " -connect api.test:443",
    "openssl, the directory": "printf 'GET /x HTTP/1.0\\r\\nHost: api.test\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -no-CAfile -CApath"
    " /etc/ssl/certs -servername api.test -connect api.test:443",
    "npm": "npm view tiny --registry https://api.test/x/ --fetch-retries 0",
    "wget": "wget -qO- -T 60 https://api.test/x",
    "git": "git ls-remote https://api.test/x",
    "node": "node -e 'fetch(\"https://api.test/x\").then(r => r.text()).then(console.log)'",
    "java": "java -cp . Fetch",
    "curl without variables": "env -i curl -sS --max-time 60 https://api.test/x",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_believe_the_opener(bound, control, client):
    session = control.create()
    program = next(word for word in CLIENTS[client].split() if word.rpartition("/")[2] in ("python3", "openssl", "wget", "git", "node", "npm", "java", "curl"))
    if "no" in run(control, session, f"command -v {program} > /dev/null || echo no"):
        pytest.skip(f"sessions have no {program}")
    if client == "java":
        if not shutil.which("javac"):
            pytest.skip("javac is not installed")
        (bound.folder / "Fetch.java").write_text(JAVA.replace("web.test/hello", "api.test/x"))
        shelf.run("javac", "-d", bound.launcher.home, bound.folder / "Fetch.java")
    said = run(control, session, CLIENTS[client])
    assert bound.heads and ("you sent GET /x" in said or client in ("git", "npm")), said


def test_without_namespaces_variables_lead_to_the_same(bound, internet):
    edit(bound.launcher.policies / "base.json", require=REQUIRED)
    bound.file.parent.chmod(0o711)  # what is on the way to a launcher's own directory, of which /tmp/pytest-of-root is not
    bound.launcher.run = bound.file.parent / "run"
    control = bound.start(*places.wrapper("T0", bound.launcher.home))
    assert control.hello["tier"] == "T0"
    session = control.create()
    said = run(control, session, BEARER)
    assert said.startswith("you sent GET /x") and used(bound) and TOKEN not in said, said
    assert "denied" in run(control, session, f"cat {bound.file}").lower()
    assert "denied" in run(control, session, f"ls {bound.launcher.run}").lower()
    assert process(bound.launcher, "caisson-egress", "opener")
