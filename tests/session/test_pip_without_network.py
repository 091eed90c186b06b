"""image/sitecustomize.py: without network pip says so at once, and still installs files and from an index on the loopback."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "image" / "sitecustomize.py"
SENTENCE = "pip: this session has no network"
SERVE = """import functools, http.server, subprocess, sys, threading
serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    status = subprocess.run([*sys.argv[2:], "--index-url", f"http://127.0.0.1:{server.server_port}"]).returncode
    server.shutdown()
sys.exit(status)"""


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "wheels" / "caisson_example-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("caisson_example.py", "")
        out.writestr("caisson_example-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: caisson-example\nVersion: 1.0\n")
        out.writestr("caisson_example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr("caisson_example-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def pip(tmp_path):
    """pip(words that start it, its arguments): with nothing but a loopback, and none of this machine's own settings for pip."""
    shutil.copy(SOURCE, tmp_path)

    def run(program, *arguments):
        env = {name: value for name, value in os.environ.items() if not name.upper().startswith(("PIP_", "HTTP", "ALL_PROXY"))}
        env |= {"PYTHONPATH": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        alone = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        return subprocess.run([*alone, *program, *map(str, arguments)], env=env, capture_output=True, text=True, check=False, timeout=100)

    return run


AS_MODULE = ["/usr/bin/python3", "-m", "pip"]
INSTALL = ["install", "--break-system-packages", "--no-cache-dir"]


@pytest.mark.parametrize("program", [AS_MODULE, ["/usr/bin/python3", "-s", "-m", "pip"], ["/usr/bin/pip3"], ["/usr/bin/pip"]])
def test_what_would_have_to_be_fetched_is_refused_in_one_sentence_at_once(pip, tmp_path, program):
    done = pip(program, *INSTALL, "--target", tmp_path / "t", "caisson-example")
    assert done.returncode == 1
    assert done.stderr.count(SENTENCE) == 1 and "upload wheels into the home" in done.stderr, done.stderr
    assert "Retrying" not in done.stdout + done.stderr


def test_in_a_virtual_environment_too(pip, tmp_path):
    subprocess.run(["/usr/bin/python3", "-m", "venv", tmp_path / "v"], check=True, timeout=100)
    done = pip([tmp_path / "v/bin/pip"], "install", "caisson-example")
    assert done.returncode == 1 and done.stderr.count(SENTENCE) == 1 and "Retrying" not in done.stderr, done


@pytest.mark.parametrize("how", [["{wheel}"], ["--no-index", "--find-links", "{folder}", "caisson-example"]])
def test_files_are_installed_without_a_word(pip, tmp_path, wheel, how):
    done = pip(AS_MODULE, *INSTALL, "--target", tmp_path / "t", *[word.format(wheel=wheel, folder=wheel.parent) for word in how])
    assert done.returncode == 0 and SENTENCE not in done.stderr, done
    assert (tmp_path / "t/caisson_example.py").exists()


def test_an_index_on_the_loopback_serves_as_ever(pip, tmp_path, wheel):
    (tmp_path / "index/caisson-example").mkdir(parents=True)
    wheel.rename(tmp_path / "index/caisson-example" / wheel.name)
    serve = [sys.executable, "-c", SERVE, tmp_path / "index"]
    done = pip(serve, *AS_MODULE, *INSTALL, "--target", tmp_path / "t", "caisson-example")
    assert done.returncode == 0 and (tmp_path / "t/caisson_example.py").exists(), done


def test_programs_that_are_not_pip_keep_their_lookups(pip):
    done = pip(["/usr/bin/python3", "-c", "import socket; print(socket.getaddrinfo.__module__, __import__('os').environ.get('PIP_RETRIES'))"])
    assert done.stdout == "socket None\n"
