"""Parts of the page driver by themselves: parts_test.js, by Node's own runner."""
import os
import pathlib
import shutil
import subprocess

import driver_process
import pytest


def test_the_parts_do_what_they_say():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    folder, problem = driver_process.installed()
    if problem:
        pytest.skip(problem)
    tests = pathlib.Path(__file__).with_name("parts_test.js")
    environment = {**os.environ, "CAISSON_DRIVER": str(folder)}
    done = subprocess.run([driver_process.node(), "--test", tests], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
