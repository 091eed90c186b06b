"""Installing into the home, as sessions are: pip, npm, cargo and go with packages that the test builds itself, for there is no
network. What they install runs by name in the next command, and neither the system nor another workspace is changed."""

import base64
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
import zipfile

import pytest
from harness import SESSION_UID, edit, listing


def give(path: pathlib.Path):
    """To the sessions' user."""
    for one in [path, *path.rglob("*")] if path.is_dir() else [path]:
        os.chown(one, SESSION_UID, SESSION_UID)


def wheel(into: pathlib.Path, name="caisson_example", version="1.0") -> pathlib.Path:
    """A wheel as any build tool makes it: a module, and a program."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\ndef main():\n    print('{name}', VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:main\n",
    }
    record = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(text)}")
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    out = into / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    give(out)
    return out


def tarball(into: pathlib.Path, name="caisson-example") -> pathlib.Path:
    """A package as `npm pack` makes it, with a program."""
    manifest = {"name": name, "version": "2.0.0", "main": "index.js", "bin": {f"{name}-say": "say.js"}}
    files = {
        "package/package.json": json.dumps(manifest),
        "package/index.js": "module.exports = 42;\n",
        "package/say.js": f"#!/usr/bin/env node\nconsole.log('{name}', require('./index.js'));\n",
    }
    out = into / f"{name}-2.0.0.tgz"
    with tarfile.open(out, "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    give(out)
    return out


@pytest.fixture
def run(control, session):
    """run(script): in bash of the session, as clients do; what it printed. It must succeed."""

    return lambda script: control.output(session, "bash", "-c", script)


@pytest.fixture
def need(control, session):
    def need(*argv):
        if control.run(session, "bash", "-c", '"$@"', "bash", *argv)[0].get("exit_code") != 0:
            pytest.skip(f"not installed here: {' '.join(argv)}")

    return need


@pytest.fixture
def clean(launcher):
    """The home as it was."""
    before = set(launcher.home.iterdir())
    yield launcher.home
    gone = [p for p in launcher.home.iterdir() if p not in before]
    subprocess.run(["rm", "-rf", *map(str, gone)], check=True)


def system_state():
    """What must not change: the places where packages of the system are."""
    return listing("/usr/lib/python3/dist-packages", "/usr/local/lib", "/usr/local/bin", "/usr/lib/node_modules", "/var/lib/dpkg")


@pytest.mark.parametrize("user", ["--user", ""], ids=["with --user", "without"])
def test_pip_installs_a_wheel_into_the_home(run, need, clean, user):
    need("/usr/bin/python3", "-m", "pip", "--version")
    wheel(clean)
    before = system_state()
    run(f"/usr/bin/python3 -m pip install {user} --no-index --no-warn-script-location caisson_example-1.0-py3-none-any.whl")
    assert run("/usr/bin/python3 -c 'import caisson_example; print(caisson_example.__file__)'").startswith("/home/gem/.local/lib/python3")
    assert run("caisson_example-say") == "caisson_example 1.0\n"
    assert system_state() == before


def test_what_one_session_installed_the_next_one_has(run, need, control, clean):
    need("/usr/bin/python3", "-m", "pip", "--version")
    wheel(clean)
    run("/usr/bin/python3 -m pip install --no-index --no-warn-script-location caisson_example-1.0-py3-none-any.whl")
    other = control.create()
    assert control.output(other, "caisson_example-say") == "caisson_example 1.0\n"
    control.destroy(other)


def test_the_marker_of_pep_668_still_refuses_where_its_answer_is_taken_away(run, need, clean, control, session):
    """The switch is the policy's variable and nothing else: without it Debian's pip refuses, so the tests above prove something."""
    need("/usr/bin/python3", "-m", "pip", "--version")
    if not list(pathlib.Path("/usr/lib").glob("python3*/EXTERNALLY-MANAGED")):
        pytest.skip("this system's Python is not marked as externally managed")
    wheel(clean)
    pip = "unset PIP_BREAK_SYSTEM_PACKAGES; /usr/bin/python3 -m pip install --no-index caisson_example-1.0-py3-none-any.whl"
    ended, _, err = control.run(session, "bash", "-c", pip)
    assert ended["exit_code"] != 0 and "externally-managed-environment" in err


def test_pip_cannot_install_into_the_system(run, need, clean, control, session):
    need("/usr/bin/python3", "-m", "pip", "--version")
    wheel(clean)
    pip = "/usr/bin/python3 -m pip install --no-index --prefix /usr caisson_example-1.0-py3-none-any.whl"
    ended, out, err = control.run(session, "bash", "-c", pip)
    assert ended["exit_code"] != 0 and "Read-only file system" in out + err


def test_pip_uninstalls_what_it_installed(run, need, clean):
    need("/usr/bin/python3", "-m", "pip", "--version")
    wheel(clean)
    run("/usr/bin/python3 -m pip install --no-index --no-warn-script-location caisson_example-1.0-py3-none-any.whl")
    run("/usr/bin/python3 -m pip uninstall -y caisson_example")
    assert run("/usr/bin/python3 -c 'import caisson_example' 2>&1 || true").strip().endswith("No module named 'caisson_example'")


def test_a_virtual_environment_works_beside_it(run, need, clean):
    need("/usr/bin/python3", "-c", "import venv, ensurepip")
    wheel(clean)
    run("/usr/bin/python3 -m venv env && env/bin/pip install --no-index caisson_example-1.0-py3-none-any.whl")
    assert run("env/bin/caisson_example-say") == "caisson_example 1.0\n"


def test_npm_installs_a_tarball_into_the_working_directory(run, need, clean):
    need("npm", "--version")
    tarball(clean)
    run("npm install --offline --no-audit --no-fund ./caisson-example-2.0.0.tgz")
    assert run("node -p 'require(\"caisson-example\")'") == "42\n"
    assert run("npx --offline caisson-example-say") == "caisson-example 42\n"


def test_npm_installs_globally_into_the_home(run, need, clean):
    need("npm", "--version")
    tarball(clean)
    before = system_state()
    run("npm install --offline --no-audit --no-fund -g ./caisson-example-2.0.0.tgz")
    assert run("command -v caisson-example-say") == "/home/gem/.local/bin/caisson-example-say\n"
    assert run("caisson-example-say") == "caisson-example 42\n"
    assert system_state() == before


def test_go_installs_a_local_module_into_the_home(run, need, clean):
    need("bash", "-c", "PATH=$PATH:/usr/local/go/bin go version")
    module = clean / "say"
    module.mkdir()
    (module / "go.mod").write_text("module example.test/caisson-go-say\n\ngo 1.19\n")
    (module / "main.go").write_text('package main\n\nfunc main() { println("from go") }\n')
    give(module)
    run("cd say && PATH=$PATH:/usr/local/go/bin go install .")
    assert run("caisson-go-say 2>&1") == "from go\n"


@pytest.fixture
def rust(fresh):
    """A launcher that grants the host's Rust toolchain, wherever it is, as /opt/rust; its control connection."""
    try:
        done = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("no Rust toolchain here")
    root = pathlib.Path(done.stdout.strip()).resolve()
    if done.returncode != 0 or not (root / "bin/cargo").exists():
        pytest.skip(f"no Rust toolchain with cargo here: {done.stderr.strip() or root}")
    base = json.loads((fresh.policies / "base.json").read_text())
    grant = {"path": "/opt/rust", "source": str(root), "access": "read", "execute": True, "description": "Rust"}
    edit(fresh.policies / "base.json", grants=[*base["grants"], grant])
    return fresh, fresh.start().control()


def test_cargo_installs_a_local_crate_into_the_home(rust):
    launcher, control = rust
    crate = launcher.home / "say"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text('[package]\nname = "caisson-cargo-say"\nversion = "0.1.0"\nedition = "2021"\n')
    (crate / "src/main.rs").write_text('fn main() { println!("from cargo"); }\n')
    give(crate)
    session = control.create()
    control.output(session, "bash", "-c", "PATH=$PATH:/opt/rust/bin cargo install --offline --path say")
    assert control.output(session, "caisson-cargo-say") == "from cargo\n"


def test_another_workspace_finds_nothing_of_it(run, need, clean, control):
    need("/usr/bin/python3", "-m", "pip", "--version")
    wheel(clean)
    run("/usr/bin/python3 -m pip install --no-index --no-warn-script-location caisson_example-1.0-py3-none-any.whl")
    control.call("workspace_create", name="elsewhere")
    there = control.create(workspace="elsewhere")
    assert "No module named" in control.run(there, "/usr/bin/python3", "-c", "import caisson_example")[2]
    control.destroy(there)
    control.call("workspace_destroy", workspace="elsewhere")
