"""An image that is built with PYTHON_VERSIONS has these as kernels, and for /v1/code."""
import pathlib
import re

import pytest
from conftest import RUN, remove, sh

VERSIONS = ["3.10", "3.12"]  # of 3.10 something is mended
ENVIRONMENT = {"PYTHON_VERSIONS": " ".join(VERSIONS), "CAISSON_IMAGE": "caisson-test-python"}
ABSENT = ("Could not transfer artifact", "Could not resolve", "No matching distribution found", "Unable to fetch")


@pytest.fixture(scope="module")
def with_python(engine, image, start):
    """All but the stage of Python and what follows it is taken from the image that is here."""
    done = sh(RUN, "--engine", engine, "--build-only", check=False, env=ENVIRONMENT)
    if done.returncode != 0:
        # Stages are built side by side: only the whole log tells which one failed first.
        named = re.search(r"whole log: (.*)\)", done.stderr)
        log = pathlib.Path(named[1]).read_text() if named else done.stderr
        said = next((line for line in log.splitlines() if any(word in line for word in ABSENT)), None)
        if said and 'building at STEP "RUN /image/python/fetch' in log:
            pytest.skip(f"CPython or ipykernel cannot be downloaded: {said[:200]}")
        pytest.fail("\n".join(line for line in log.splitlines() if re.search("(?i)error|fail|cannot", line)) or log)
    served = start(**ENVIRONMENT)
    yield served
    remove(engine, served.name)
    sh(engine, "rmi", ENVIRONMENT["CAISSON_IMAGE"], check=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_they_are_kernels(with_python, version):
    info = with_python.http.get("/v1/jupyter/info").json()["data"]
    assert f"python{version}" in info["available_kernels"]
    code = "import ctypes, json, sqlite3, ssl, sys; '%d.%d' % sys.version_info[:2]"
    answer = with_python.http.post("/v1/jupyter/execute", json={"code": code, "kernel_name": f"python{version}"}).json()
    assert answer["data"]["status"] == "ok" and answer["data"]["outputs"][0]["data"]["text/plain"] == f"'{version}'", answer


@pytest.mark.parametrize("version", VERSIONS)
def test_code_is_run_by_them(with_python, version):
    body = {"language": "python", "code": "import sys; print('%d.%d' % sys.version_info[:2])"}
    answer = with_python.http.post("/v1/code/execute", params={"version": f"python{version}"}, json=body).json()
    assert answer["data"]["stdout"] == f"{version}\n", answer


@pytest.mark.parametrize("version", VERSIONS)
def test_their_pip_says_that_there_is_no_network(with_python, version):
    done = with_python.bash(f"/opt/python/{version}/bin/python3 -m pip install caisson-no-such-package")
    assert done["exit_code"] == 1 and done["stderr"].count("this session has no network") == 1, done


def test_a_version_that_image_python_does_not_have_ends_the_build(engine, image):
    done = sh(RUN, "--engine", engine, "--build-only", check=False, env={**ENVIRONMENT, "PYTHON_VERSIONS": "2.7"})
    assert done.returncode != 0 and "image/python has no Python 2.7; there is: 3.10 3.11 3.12" in done.stderr, done.stderr
