"""What the tests need of npm (js/package.json, with its lock), in a folder of the build."""
import functools
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).parent / "js"
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "js"


def run(*argv, timeout=300):
    return subprocess.run([str(a) for a in argv], cwd=BUILD, capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, "npm_config_update_notifier": "false"})


@functools.cache
def problem() -> str | None:
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        return f"not installed here: {', '.join(missing)}"
    BUILD.mkdir(parents=True, exist_ok=True)
    for file in SOURCE.iterdir():
        shutil.copy(file, BUILD)
    lock, done_for = (SOURCE / "package-lock.json").read_bytes(), BUILD / "installed"
    if done_for.is_file() and done_for.read_bytes() == lock:
        return None
    try:
        done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", timeout=120)
    except subprocess.TimeoutExpired:
        return "npm cannot install tests/api/js here: no answer within two minutes"
    if done.returncode == 0:
        done_for.write_bytes(lock)
        return None
    return f"npm cannot install tests/api/js here: {done.stderr[-300:]}"


def installed() -> pathlib.Path:
    """The folder with node_modules; skips the test where it cannot be had."""
    if why := problem():
        pytest.skip(why)
    return BUILD
