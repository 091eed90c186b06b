import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stage  # noqa: E402
import world  # noqa: E402
from connected import t0, t1, there  # noqa: E402, F401


@pytest.fixture
def place():
    one = stage.Namespaces()
    yield one
    one.close()


@pytest.fixture(scope="session")
def double(tmp_path_factory):
    return stage.compiled(tmp_path_factory.mktemp("double"))


@pytest.fixture
def gate(tmp_path, double):
    one = stage.Gate(tmp_path, double)
    yield one
    one.close()


@pytest.fixture
def internet(tmp_path):
    one = world.World(tmp_path)
    yield one
    one.close()
