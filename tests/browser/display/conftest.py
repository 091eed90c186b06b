"""A display with its server, a worker and a client, for the tests of caisson-display."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from display import PROGRAM, Client, Worker, Xvnc, compile_client  # noqa: E402


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    if shutil.which("Xvnc") is None:
        pytest.skip("there is no Xvnc (package tigervnc-standalone-server)")
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    compiled = compile_client(tmp_path_factory.mktemp("client"))
    if compiled is None:
        pytest.skip("the client of these tests cannot be compiled: it needs cc and libxcb1-dev")
    return compiled


@pytest.fixture(scope="module")
def xvnc(program):
    with Xvnc() as one:
        yield one


@pytest.fixture
def worker(xvnc):
    with Worker(xvnc.name) as one:
        yield one


@pytest.fixture
def client(xvnc, program):
    with Client(xvnc.name, program) as one:
        yield one


@pytest.fixture
def at(worker, client):
    """The pointer is in the middle, and nothing of that is left to be heard."""
    worker.act("MOVE_TO", x=640, y=512)
    client.events()
    return worker
