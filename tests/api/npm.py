"""What the tests need of npm, in folders of the build: js/ (what makes and checks a JavaScript client), cdp_clients/ (programs that drive
a browser), mcp_clients/, nested/ (agents that confine their commands), each with its package.json and its lock."""
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess

import pytest
from launcher_process import BUILD as BUILT

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"


def run(*argv, name="js", timeout=300):
    return subprocess.run([str(a) for a in argv], cwd=BUILD / name, capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, "npm_config_update_notifier": "false"})


def node() -> str:
    """The page driver's own Node.js, where the system's is too old for it."""
    own = BUILT / "launcher/tools/driver/bin/node"
    return str(own) if own.exists() else "node"


@functools.cache
def problem(name="js") -> str | None:
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        return f"not installed here: {', '.join(missing)}"
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # another leg may install the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install(name, folder)


def install(name: str, folder: pathlib.Path) -> str | None:
    for file in (HERE / name).iterdir():
        shutil.copy(file, folder)
    lock, done_for = (folder / "package-lock.json").read_bytes(), folder / "installed"
    if done_for.is_file() and done_for.read_bytes() == lock:
        return None
    try:
        done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", name=name, timeout=120)
    except subprocess.TimeoutExpired:
        return f"npm cannot install tests/api/{name} here: no answer within two minutes"
    if done.returncode == 0:
        done_for.write_bytes(lock)
        return None
    return f"npm cannot install tests/api/{name} here: {done.stderr[-300:]}"


def installed(name="js") -> pathlib.Path:
    """The folder with node_modules; skips the test where it cannot be had."""
    if why := problem(name):
        pytest.skip(why)
    return BUILD / name
