"""Clients in Python that want other versions than our own tests: each has a virtual environment of its own in the build."""
import fcntl
import pathlib
import subprocess
import sys

import npm
import pytest


def installed(name: str, requirement: str) -> pathlib.Path:
    """Its interpreter; skips the test where it cannot be had."""
    folder = npm.BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # another leg may install the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        done_for = folder / "installed"
        if done_for.is_file() and done_for.read_text() == requirement:
            return folder / "bin/python"
        for command in ([sys.executable, "-m", "venv", folder], [folder / "bin/python", "-m", "pip", "install", "-q", requirement]):
            try:
                done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"{requirement} cannot be installed here: no end within ten minutes")
            if done.returncode != 0:
                pytest.skip(f"{requirement} cannot be installed here: {done.stderr[-300:]}")
        done_for.write_text(requirement)
    return folder / "bin/python"
