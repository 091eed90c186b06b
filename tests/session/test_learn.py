"""`caisson policy learn`: what it proposes lets the same command run again, grants nothing as a whole, and misses nothing."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import zipfile

import pytest
from harness import CLI, SESSION_UID, copy_policies, eventually

BROAD = {"/", "/etc", "/home", "/root", "/srv", "/usr", "/var", "/opt", "/home/gem"}
UID = 20000  # of `caisson run` as root
SERVER = """
const http = require('http');
const server = http.createServer((request, answer) => answer.end('served')).listen(0, '127.0.0.1', () =>
  http.get({port: server.address().port}, (answer) => { answer.pipe(process.stdout); answer.on('end', () => server.close()); }));
"""


@pytest.fixture
def policies(tmp_path):
    return copy_policies(tmp_path / "policies")


@pytest.fixture
def place(here):
    """A folder that no policy grants."""
    place = f"/srv/caisson-test-{os.getpid()}"
    os.makedirs(place)
    yield place
    shutil.rmtree(place)


def give(place: str):
    subprocess.run(["chown", "-R", f"{UID}:{UID}", place], check=True)


def learn(policies, *command: str, options=(), status=0):
    """The learnt policy, and what was said about it."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([CLI, "--policies", policies, "policy", "learn", "-o", f"{folder}/learnt", *options, "--", *command],
                             capture_output=True, text=True, timeout=300)
        assert ran.returncode == status, ran.stdout + ran.stderr
        with open(f"{folder}/learnt") as file:
            return json.load(file), ran.stderr


def need(*programs: str) -> str:
    for program in programs:
        if found := shutil.which(program, path="/usr/bin:/bin"):
            return found
    pytest.skip(f"none of {programs} is installed in /usr/bin")


def wheel(place: str) -> list[str]:
    name = f"{place}/demo-1.0-py3-none-any.whl"
    info = "demo-1.0.dist-info"
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("demo.py", "x = 1\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"demo.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    need("pip3")
    return [need("python3"), "-m", "pip", "install", "--user", "--no-index", "--break-system-packages", name]


def clone(place: str) -> list[str]:
    git = need("git")
    script = f"git init -q {place}/repo && cd {place}/repo && echo text > file && git add file && " \
             "git -c user.name=a -c user.email=a@example.org commit -qm first"
    subprocess.run(["bash", "-c", script], check=True, timeout=60)
    os.makedirs(f"{place}/out")
    return ["bash", "-c", f"rm -rf {place}/out/copy && {git} clone -q {place}/repo {place}/out/copy"]


def server(place: str) -> list[str]:
    with open(f"{place}/server.js", "w") as file:
        file.write(SERVER)
    return [need("node"), f"{place}/server.js"]


def compiler(place: str) -> list[str]:
    with open(f"{place}/main.c", "w") as file:
        file.write('#include <stdio.h>\n#include "own.h"\nint main(void) { return printf("%d\\n", OWN) < 0; }\n')
    with open(f"{place}/own.h", "w") as file:
        file.write("#define OWN 1\n")
    return [need("gcc", "clang-19", "cc"), "-O1", "-o", f"{place}/main", f"{place}/main.c"]


@pytest.mark.parametrize("what", [wheel, clone, server, compiler], ids=lambda f: f.__name__)
def test_the_learnt_policy_runs_the_command_again(policies, place, what):
    command = what(place)
    give(place)
    policy, said = learn(policies, *command, options=["--verify"])
    assert "nothing was refused" in said and "LOST" not in said
    paths = {grant["path"] for grant in policy["grants"]}
    assert any(path.startswith(place) for path in paths)
    assert not paths & BROAD
    assert {entry["field"] for entry in policy["weaken"]} == {f"/grants{path}" for path in paths}


@pytest.mark.parametrize("what", [wheel, clone, server, compiler], ids=lambda f: f.__name__)
def test_a_session_of_the_learnt_policy_has_no_denial(fresh, place, what):
    """Not by the learner's own word: a launcher is given the policy, and its log is asked."""
    command = what(place)
    give(place)
    policy, _ = learn(fresh.policies, *command)
    grants = {grant["path"]: grant for grant in policy["grants"]}
    assert not set(grants) & BROAD
    (fresh.policies / "learnt.json").write_text(json.dumps(policy))
    subprocess.run(["chown", "-R", f"{SESSION_UID}:{SESSION_UID}", place], check=True)
    control = fresh.start().control()
    session = control.create("learnt")
    ended, out, err = control.run(session, *command)
    assert ended.get("exit_code") == 0, f"{command}\n{out}\n{err}"
    control.destroy(session)
    records = fresh.records(session)
    assert not [r for r in records if r["event"] in ("denial", "denials_dropped", "limit_hit", "exec_refused")]
    assert records[-1]["denials"] == {"recorded": 0, "dropped": 0}


def test_verify_names_what_is_lost(policies, place):
    """A file is only there when the command is learnt: under the learnt policy it is missing, and with it the command's success."""
    with open(f"{place}/once", "w") as file:
        file.write("text")
    give(place)
    _, said = learn(policies, "bash", "-c", f"cat {place}/once && rm {place}/once", options=["--verify"], status=22)
    assert f"LOST under the learnt policy: 'not there: {place}/once'" in said and "status 1 instead of 0" in said


def test_a_refusal_is_named(policies, place):
    _, said = learn(policies, "python3", "-c", "import ctypes; ctypes.CDLL(None).mount(b'a', b'/', b'tmpfs', 0, 0)")
    assert "was refused mount 1 times" in said


def test_needs_a_command_or_a_session(policies):
    ran = subprocess.run([CLI, "--policies", policies, "policy", "learn"], capture_output=True, text=True, timeout=60)
    assert ran.returncode != 0 and "--session" in ran.stderr


def test_a_living_session_is_learnt_from(launcher, policies):
    """It asks for a file that its policy does not show; the learner, outside, proposes it."""
    wanted = f"/srv/caisson-wish-{os.getpid()}"
    with open(wanted, "w") as file:
        file.write("text")
    os.chmod(wanted, 0o644)
    control = launcher.control()
    session = control.create("bash")
    learner = subprocess.Popen([CLI, "--policies", policies, "--run", launcher.run, "--json", "policy", "learn", "--session",
                                session, "--seconds", "200"], stdout=subprocess.PIPE, text=True)
    try:
        pid = control.call("session_stat", session=session)[0]["pid"]
        eventually(lambda: f"TracerPid:\t{learner.pid}\n" in open(f"/proc/{pid}/status").read())
        control.run(session, "cat", wanted)
        learner.send_signal(signal.SIGINT)
        answer = json.loads(learner.communicate(timeout=60)[0])
    finally:
        learner.kill()
        os.remove(wanted)
    assert wanted in {grant["path"] for grant in answer["policy"]["grants"]}
    assert "session" in answer["policy"]["description"]
    control.run(session, "true")  # it lives on
