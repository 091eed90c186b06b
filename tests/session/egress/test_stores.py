"""An authority of the operator's, put into one directory: clients of sessions that go out believe it, whatever store they have."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness
import places
import pytest
import shelf
import stage
import world
from connected import REQUIRED
from harness import edit, eventually
from opening import authority
from outgoing import records
from test_clients import FETCH, JAVA, NODE, missing
from world import PUBLIC, World, rule

OPERATORS = pathlib.Path("/etc/caisson/ca")
STORE = "/etc/ssl/certs"
URL = "https://web.test/hello"
NPM = "mkdir -p n && cd n && npm install --silent --no-audit --no-fund --registry https://web.test/npm/ tiny && ls node_modules && echo served"
PIP = "/usr/bin/python3 -m pip download -q --disable-pip-version-check -d pip -i https://web.test/simple tiny && ls pip && echo served"
S_CLIENT = "printf 'GET /hello HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error {} -servername web.test -connect web.test:443 | tail -n 1"
# What is run, and the programs that it needs. Nothing of it says what to believe.
CLIENTS = {
    "curl": (f"curl -sS {URL}", "curl"),
    "git": ("rm -rf tiny && git clone -q https://web.test/tiny.git && cat tiny/file", "git"),
    "pip": (PIP, "pip3"),
    "npm": (NPM, "npm"),
    "node fetch": (NODE.format(f'process.stdout.write(await (await fetch("{URL}")).text())'), "node"),
    "Python urllib": (f"/usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('{URL}').read().decode(), end='')\"", "python3"),
    "Python requests": (f'/usr/bin/python3 -c "{FETCH.format("requests").replace(", verify=" + repr("ca.pem"), "")}"', "python3", "requests"),
    "openssl": (S_CLIENT.format(""), "openssl"),
    "Java": ("java -cp . Fetch", "javac"),
}  # fmt: skip
# The same by what is mounted alone: nobody has set a variable.
BY_MOUNTS = {
    "curl": CLIENTS["curl"],
    "wget": (f"wget -q -O - {URL}", "wget"),
    "git": CLIENTS["git"],
    "Python urllib": CLIENTS["Python urllib"],
    "openssl, the directory": (S_CLIENT.format(f"-no-CAfile -CApath {STORE}"), "openssl"),
    "openssl, the file": (S_CLIENT.format(f"-no-CApath -CAfile {STORE}/ca-certificates.crt"), "openssl"),
    "Java": CLIENTS["Java"],
}
RULES = {
    "network": "allowlist",
    "egress": [{"host": "web.test", "why": "what a test needs"}],
    "weaken": [{"field": "/network", "why": "what a test needs"}],
}


class Corporate:
    """What stands where the operator's directory is, and a server whose authority is in it or not."""

    def __init__(self, internet, folder, launcher):
        self.internet, self.launcher, self.folder = internet, launcher, folder / "operators"
        self.folder.mkdir()
        OPERATORS.mkdir(parents=True, exist_ok=True)
        self.file = shelf.served(internet, folder, PUBLIC)
        files = internet.files
        internet.files = lambda: {**files(), str(OPERATORS): self.folder}
        edit(launcher.policies / "bash.json", **RULES)
        if not missing("javac"):
            (folder / "Fetch.java").write_text(JAVA)
            shelf.run("javac", "-d", launcher.home, folder / "Fetch.java")
        own(launcher.home)

    def put(self):
        shutil.copy(self.file, self.folder / "corporate.pem")

    def start(self, *wrapper, waits=True):
        self.launcher.start(wrapper=[*self.internet.wrapper(), *wrapper])
        if waits and os.listdir(self.folder):
            eventually((self.launcher.run / "trust" / "system" / "java" / "cacerts").exists, 60, "the store is there")
        return self.launcher.control()


def own(home):
    for path in (home, *home.rglob("*")):
        os.chown(path, harness.SESSION_UID, harness.SESSION_UID)


@pytest.fixture
def corporate(internet, tmp_path, fresh):
    return Corporate(internet, tmp_path, fresh)


def connected(control):
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace: see the test of that tier")
    return control


@pytest.fixture(scope="module")
def session(here, tmp_path_factory):
    """run(line) of a session whose operator has an authority."""
    folder = tmp_path_factory.mktemp("stores")
    internet = World(folder)
    with harness.Launcher(tmp_path_factory.mktemp("launcher")) as launcher:
        one = Corporate(internet, folder, launcher)
        one.put()
        control = connected(one.start())
        session = control.create()
        eventually(lambda: control.output(session, "/bin/bash", "-c", "getent hosts web.test; true"), 60, "the name is known")
        yield lambda line: control.run(session, "/bin/bash", "-c", line)
    internet.close()


def served(run, command, needed, before=""):
    if why := missing(*needed):
        pytest.skip(why)
    ended, out, err = run(f"{before} {command}")
    assert ended.get("exit_code") == 0 and out.endswith(shelf.TEXT), (ended, out, err)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_believes_it(session, client):
    command, *needed = CLIENTS[client]
    served(session, command, needed, "PATH=/usr/local/bin:/usr/bin:/bin;")


@pytest.mark.parametrize("client", BY_MOUNTS)
def test_a_client_finds_it_without_a_variable(session, client):
    command, *needed = BY_MOUNTS[client]
    served(session, command, needed, "for name in $(compgen -e); do unset $name; done; export HOME=$PWD PATH=/usr/bin:/bin;")


def test_the_systems_store_is_as_it_was_besides(session):
    """The same names, that lead to the same; what is added has a name by which OpenSSL finds it."""
    ended, out, err = session(f"cd {STORE} && ls -A && readlink -e * | wc -l")
    *names, found = out.split()
    systems = {name for name in os.listdir(STORE) if name != "java"}
    added = set(names) - systems - {"java", "chromium.json"}
    assert ended.get("exit_code") == 0 and systems <= set(names) and int(found) == len(names), (out, err)
    assert len(added) == 1 and re.fullmatch(r"[0-9a-f]{8}\.[0-9]", *added)


def test_chromiums_policy_has_it(session):
    ended, out, err = session(f"cat /etc/chromium/policies/managed/caisson-authorities.json {STORE}/ca-certificates.crt")
    policy, _, bundle = out.partition("\n")
    (one,) = json.loads(policy)["CACertificates"]
    last = bundle.rpartition("-----BEGIN CERTIFICATE-----")[2].partition("-----END")[0]
    assert ended.get("exit_code") == 0 and base64.b64decode(one) == base64.b64decode(last), err


def test_chromium_believes_what_its_policy_has(internet, tmp_path, corporate):
    """In the workspace's namespace without a launcher's walls, at the store of one that ran."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    corporate.put()
    corporate.start().create()
    store = corporate.launcher.run / "trust" / "system"
    internet.open(rule("web.test"), port=443)
    managed = pathlib.Path("/etc/chromium/policies/managed")

    def prepare():
        internet.as_workspace()
        world.bind({STORE: store})
        stage.call(stage.libc.mount(b"none", b"/etc/chromium", b"tmpfs", 0, None))
        managed.mkdir(parents=True)
        (managed / "caisson-authorities.json").symlink_to(f"{STORE}/chromium.json")

    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile"]
    done = subprocess.run([*command, "--dump-dom", "https://web.test/hello.html"], preexec_fn=prepare, capture_output=True, text=True, timeout=240, check=False)
    assert shelf.TEXT.strip() in done.stdout, done.stderr


def inode(control, session):
    """Of the store that it has; and its variables."""
    number, *variables = control.output(session, "/bin/bash", "-c", f"stat -c %i {STORE}; env").splitlines()
    return int(number), variables


def test_without_it_nothing_is_different(corporate):
    control = connected(corporate.start())
    session = control.create()
    number, variables = inode(control, session)
    assert number == os.stat(STORE).st_ino and not [v for v in variables if v.startswith(("SSL_CERT", "NODE_EXTRA", "JAVA_TOOL"))]
    fetch = lambda: control.output(session, "/bin/bash", "-c", f"ls -d /etc/chromium 2>/dev/null; curl -sS {URL} 2>&1; true")  # noqa: E731
    eventually(lambda: "certificate" in fetch().splitlines()[0], 60, "the name is known, and the server not believed")


def test_a_domain_that_stays_inside_has_the_systems(corporate):
    corporate.put()
    edit(corporate.launcher.policies / "bash.json", network="loopback", egress=[], weaken=[])
    control = connected(corporate.start(waits=False))
    assert inode(control, control.create())[0] == os.stat(STORE).st_ino


def test_what_the_operator_changes_reaches_sessions_that_run(corporate):
    another = authority(corporate.folder.parent, "another")[1]
    shutil.copy(another, corporate.folder / "another.crt")
    control = connected(corporate.start())
    session = control.create()
    fetch = lambda: control.output(session, "/bin/bash", "-c", f"curl -sS {URL} 2>&1; true")  # noqa: E731
    eventually(lambda: "certificate" in fetch(), 60, "the name is known, and the server not believed")
    corporate.put()
    eventually(lambda: fetch() == shelf.TEXT, 60, "it is believed")
    (corporate.folder / "corporate.pem").unlink()
    eventually(lambda: "certificate" in fetch(), 60, "it is not believed any more")


def test_what_is_no_certificate_is_on_record_and_the_rest_is_believed(corporate):
    corporate.put()
    (corporate.folder / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n")
    control = connected(corporate.start())
    session = control.create()
    eventually(lambda: control.output(session, "/bin/bash", "-c", f"curl -sS {URL} 2>&1; true") == shelf.TEXT, 60, "it is believed")
    said = records(corporate.launcher, "egress_exit")
    assert len([r for r in said if "broken.pem" in r.get("why", "")]) == 1, said


def test_a_store_of_the_policys_own_stays(corporate, tmp_path):
    """Who grants another store knows what it has."""
    corporate.put()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "only.pem").write_text("nothing")
    policy = json.loads((corporate.launcher.policies / "bash.json").read_text())
    grants = [*policy.get("grants", []), {"path": STORE, "source": str(mine), "description": "a test's"}]
    edit(corporate.launcher.policies / "bash.json", grants=grants, weaken=[*RULES["weaken"], {"field": f"/grants{STORE}", "why": "what a test needs"}])
    control = connected(corporate.start(waits=False))
    out = control.output(control.create(), "/bin/bash", "-c", f"ls {STORE}; env")
    assert out.splitlines()[0] == "only.pem" and "SSL_CERT_FILE" not in out


def test_what_only_root_may_read_in_the_systems_store_stays_so(corporate, tmp_path):
    """A server's key may lie there. And what has a name of ours there is not written through."""
    copy, elsewhere = tmp_path / "certs", tmp_path / "elsewhere"
    shutil.copytree(STORE, copy, symlinks=True)
    shutil.rmtree(copy / "java", ignore_errors=True)
    elsewhere.mkdir()
    (elsewhere / "cacerts").write_text("another's")
    (copy / "java").symlink_to(elsewhere)
    for name, mode in (("server.pem", 0o600), ("public.pem", 0o644)):
        (copy / name).write_text("what is in it")
        (copy / name).chmod(mode)
    files = corporate.internet.files
    corporate.internet.files = lambda: {**files(), STORE: copy}
    corporate.put()
    control = connected(corporate.start())
    out = control.output(control.create(), "/bin/bash", "-c", f"cd {STORE}; cat public.pem; echo; ls server.pem 2>&1; head -c 1 java/cacerts >/dev/null && echo our own")
    assert out.splitlines()[0] == "what is in it" and "No such file" in out.splitlines()[1] and out.endswith("our own\n")
    assert (elsewhere / "cacerts").read_text() == "another's"


@pytest.mark.parametrize("wrong", ["FIFO", "too long"])
def test_what_is_no_file_of_certificates_is_told_and_the_others_are_believed(corporate, wrong):
    corporate.put()
    if wrong == "FIFO":
        os.mkfifo(corporate.folder / "a-wrong.pem")
    else:
        (corporate.folder / "a-wrong.pem").write_bytes(b"x" * (5 << 20))
    control = connected(corporate.start())
    session = control.create()
    eventually(lambda: control.output(session, "/bin/bash", "-c", f"curl -sS {URL} 2>&1; true") == shelf.TEXT, 60, "it is believed")
    assert wrong == "FIFO" or eventually(lambda: [r for r in records(corporate.launcher, "egress_exit") if "a-wrong.pem" in r.get("why", "")])


def test_beside_a_copy_of_the_system_it_is_apart(corporate):
    """Nothing may be mounted in the copy: variables lead to the store, and what has none believes the copy's."""
    corporate.put()
    why = [{"field": field, "why": "what a test needs"} for field in ("/network", "/system_packages")]
    edit(corporate.launcher.policies / "bash.json", system_packages=True, weaken=why, limits={"packages_bytes": 256 << 20})
    control = connected(corporate.start())
    if control.hello["tier"] != "T3":
        pytest.skip("there is a copy of the system in T3 alone")
    session = control.create()
    fetch = lambda client: control.output(session, "/bin/bash", "-c", f"{CLIENTS[client][0]} 2>&1; true")  # noqa: E731
    eventually(lambda: fetch("curl") == shelf.TEXT, 60, "it is believed")
    for client in ("openssl", "Java"):
        assert missing(*CLIENTS[client][1:]) or fetch(client).endswith(shelf.TEXT), client
    assert "certificate" in control.output(session, "/bin/bash", "-c", f"env -u CURL_CA_BUNDLE -u SSL_CERT_FILE -u SSL_CERT_DIR curl -sS {URL} 2>&1; true")


IN_PLACE = ("curl", "git", "npm", "node fetch", "Python urllib", "openssl", "Java")


def test_without_mounts_variables_lead_to_it(corporate, internet):
    """All in one launcher. wget has no variable, and looks where the system's are: it believes these, as before."""
    corporate.put()
    edit(corporate.launcher.policies / "base.json", require=REQUIRED)
    with tempfile.TemporaryDirectory(prefix="caisson-stores-", dir="/var/lib") as kept:
        pathlib.Path(kept).chmod(0o711)  # what is on the way to a launcher's own directory, of which /tmp/pytest-of-root is not
        corporate.launcher.run = pathlib.Path(kept) / "run"
        control = corporate.start(*places.wrapper("T0", corporate.launcher.home))
        assert control.hello["tier"] == "T0"
        session = control.create()
        wrong = {}
        for client in IN_PLACE:
            command, *needed = CLIENTS[client]
            if missing(*needed):
                continue
            ended, out, err = control.run(session, "/bin/bash", "-c", f"PATH=/usr/local/bin:/usr/bin:/bin; export GIT_CONFIG_NOSYSTEM=1; cd; {command}")
            if ended.get("exit_code") != 0 or not out.endswith(shelf.TEXT):
                wrong[client] = (ended, out, err)
        assert not wrong
        assert "system's are read" in control.output(session, "/bin/bash", "-c", f"head -c 1 {STORE}/ca-certificates.crt >/dev/null && echo \"system's are read\"")
        corporate.launcher.stop()
