"""bench.py NAME ARGUMENTS...: inside the guest, tests/bench/NAME.py against a launcher of its own, whose cgroup is its to divide."""

import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "session"))
from harness import Launcher  # noqa: E402

with Launcher(pathlib.Path(tempfile.mkdtemp(dir="/tmp"))) as launcher:
    launcher.start("--agent", "/usr/bin/true")
    done = subprocess.run([sys.executable, TESTS / "bench" / f"{sys.argv[1]}.py", launcher.socket, *sys.argv[2:]], check=False)
sys.exit(done.returncode)
