"""Confinement that a session makes of its own children: by Landlock and seccomp it can in every domain, and only narrower; by namespaces it
cannot. Then the agents that confine their commands so, unmodified, with the settings of policies/nested.md."""
import json
import pathlib
import re
import shlex

import pytest
from conftest import AGENTS, Api

PROGRAM = pathlib.Path(__file__).parent / "nested/confining.py"
PAGE = pathlib.Path(__file__).parents[2] / "policies/nested.md"
PLACE = "/home/gem/nested"
NEEDS_NAMESPACES = re.compile("bwrap: .*(namespace|Operation not permitted)")


def in_bash(api, command):
    done = api.bash(command, timeout=120)
    assert done["exit_code"] == 0, done
    return done["stdout"]


def in_shell(api, command):
    done = api.shell(command, timeout=120)
    assert done["exit_code"] == 0, done
    return done["output"]


def in_code(api, command):
    code = f"import subprocess\nprint(subprocess.run({shlex.split(command)!r}, capture_output=True, text=True, check=True).stdout)"
    done = api.data("/v1/code/execute", {"language": "python", "code": code})
    assert done["status"] == "ok", done
    return done["stdout"]


@pytest.fixture(scope="module", params=[in_bash, in_shell, in_code], ids=["bash", "shell", "code"])
def confining(request, api):
    """confining(handled): what the program found in a session of this domain."""
    api.data("/v1/file/write", {"file": f"{PLACE}/confining.py", "content": PROGRAM.read_text()})
    got = {}

    def run(handled):
        if handled not in got:
            printed = request.param(api, f"python3 -B {PLACE}/confining.py {handled}")
            got[handled] = json.loads(re.search(r"\{.*\}", printed, re.DOTALL)[0])
        return got[handled]

    yield run
    in_bash(api, f"rm -r {PLACE}")


@pytest.fixture(params=["files", "tcp"])
def found(request, confining):
    """With a ruleset of Landlock's first version, and with one that also handles connections by TCP, from its fourth on."""
    if request.param == "tcp" and confining("files")["abi"] < 4:
        pytest.skip("this kernel's Landlock does not know TCP (before Linux 6.7)")
    return request.param, confining(request.param)


def test_a_session_confines_its_children_further(found):
    handled, got = found
    before, after = got["the session"]["may"], got["confined"]["may"]
    expected = {"write in the folder": "ok", "write in the home": "EACCES", "write in /tmp": "EACCES", "read /usr": "ok", "getpriority": "ENOTEMPTY"}
    if before["a server of the session"] == "ok":  # not in tiers whose sessions have no network of their own
        expected["a server of the session"] = "EACCES" if handled == "tcp" else "ok"
    assert {before[name] for name in expected} == {"ok"}
    assert {name: after[name] for name in expected} == expected


def test_nothing_that_the_session_is_refused_comes_back(found):
    """Neither in the narrower child, nor in one whose ruleset permits everything below / and whose filter permits every call."""
    _, got = found
    for where in ("the session", "confined", "permitted everything"):
        assert "ok" not in got[where]["never"].values(), where
        assert all(got[where]["never"][name] == "EPERM" for name in ("ptrace", "mount", "unshare", "clone", "listener")), where
    assert got["permitted everything"] == got["the session"]


def test_rulesets_nest_up_to_the_kernels_limit(found):
    count, why = found[1]["layers"]
    assert 1 <= count < 16 and why == "E2BIG"


# --- agents ---

@pytest.fixture(scope="module")
def inside(launch, contract, agents):
    """A server whose sessions of bash see the agents' programs."""
    def granted(policies):
        policy = json.loads((policies / "bash.json").read_text())
        policy["grants"] = [{"path": AGENTS, "source": str(agents[0]), "access": "read", "execute": True, "description": "Agents of the tests"}]
        policy["weaken"] = [{"field": f"/grants{AGENTS}", "why": "the tests run them"}]
        (policies / "bash.json").write_text(json.dumps(policy))

    launcher = launch(policies=granted)
    return Api(launcher.url, launcher.key, contract)


def block(language):
    """The page's only example in this language: what users copy is what is tried."""
    found, = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found


@pytest.fixture
def codex(inside, agents):
    """codex(command, options="", settings=""): the command as Codex runs it, in a new folder of the home, its workspace."""
    folder = in_bash(inside, "mktemp -d -p ~").strip()

    def run(command, options="", settings=""):
        inside.data("/v1/file/write", {"file": "/home/gem/.codex/config.toml", "content": settings})
        return inside.bash(f"cd {folder} && {agents[1]}/bin/codex sandbox {options} -- bash -c {shlex.quote(command)}", timeout=120)

    yield run
    in_bash(inside, f"rm -r {folder}")


def test_codex_confines_its_commands_by_landlock_and_seccomp(inside, codex):
    settings = block("toml")
    assert (done := codex("echo kept > here && cat here /etc/hostname", settings=settings))["stdout"] == "kept\ncaisson\n", done
    for place in ("/home/gem/outside", "/tmp/outside"):
        done = codex(f"echo lost > {place}", settings=settings)
        assert done["exit_code"] != 0 and "Permission denied" in done["stderr"], done
        assert inside.bash(f"echo fine > {place} && rm {place}")["exit_code"] == 0  # which the session may
    done = codex("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 1))'", settings=settings)
    assert done["exit_code"] != 0 and "Operation not permitted" in done["stderr"], done
    done = codex("cat /etc/shadow; echo x > /usr/x; unshare -U true", settings=settings)
    assert done["exit_code"] != 0 and done["stderr"].count("\n") == 3 and done["stdout"] == "", done
    # Landlock cannot take a folder out of one that is writable: what the page says of .git.
    assert codex("mkdir .git && echo x > .git/config", settings=settings)["exit_code"] == 0


@pytest.mark.parametrize(("options", "why"), [("", NEEDS_NAMESPACES),
                                              ("--enable use_legacy_landlock", re.compile("incompatible with --use-legacy-landlock"))],
                         ids=["bubblewrap", "without the page's permissions"])
def test_codex_with_other_settings_runs_nothing(codex, options, why):
    done = codex("echo ran", f"-c sandbox_mode=workspace-write {options}")
    assert done["exit_code"] != 0 and done["stdout"] == "" and why.search(done["stderr"]), done


def test_bubblewrap_is_refused_its_namespaces(inside, agents):
    done = inside.bash(f"{agents[1]}/codex-resources/bwrap --ro-bind / / true")
    assert done["exit_code"] != 0 and NEEDS_NAMESPACES.search(done["stderr"]), done
    done = inside.bash("unshare --user true")
    assert done["exit_code"] != 0 and "Operation not permitted" in done["stderr"], done


# What srt asks of socat before it comes to bubblewrap: that it listens.
SOCAT = """#!/usr/bin/python3
import socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind(next(a for a in sys.argv if a.startswith("UNIX-LISTEN:")).split(":", 1)[1].split(",")[0])
listening.listen()
time.sleep(60)
"""


@pytest.mark.parametrize("settings", [{}, {"enableWeakerNestedSandbox": True},
                                      {"enableWeakerNestedSandbox": True, "allowNestedUserNamespaces": True}])
def test_srt_runs_nothing_whatever_its_settings(inside, agents, settings):
    if inside.bash("command -v node")["exit_code"] != 0:
        pytest.skip("sessions see no Node.js here")
    inside.data("/v1/file/write", {"file": "/home/gem/socat", "content": SOCAT})
    content = {"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
               "bwrapPath": f"{agents[1]}/codex-resources/bwrap", "socatPath": "/home/gem/socat",
               "ripgrep": {"command": f"{agents[1]}/codex-path/rg"}, **settings}
    inside.data("/v1/file/write", {"file": "/home/gem/.srt-settings.json", "content": json.dumps(content)})
    srt = f"{AGENTS}/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js"
    done = inside.bash(f"chmod +x ~/socat; cd /tmp; node {srt} -c 'echo ran'", timeout=120)
    assert done["exit_code"] != 0 and "ran" not in done["stdout"] and NEEDS_NAMESPACES.search(done["stderr"]), done


def test_srts_helper_for_seccomp_makes_a_namespace_as_well(inside, agents):
    where = f"{AGENTS}/node_modules/@anthropic-ai/sandbox-runtime/vendor/seccomp/{'x64' if 'x86_64' in agents[1] else 'arm64'}"
    done = inside.bash(f"{where}/apply-seccomp echo ran")
    assert done["exit_code"] != 0 and done["stdout"] == "" and "CLONE_NEWUSER): Operation not permitted" in done["stderr"], done
