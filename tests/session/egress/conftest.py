import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stage  # noqa: E402
import world  # noqa: E402
from bound import Bound  # noqa: E402
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
def kept():
    """A directory for secrets, in none that sessions see."""
    with tempfile.TemporaryDirectory(prefix="caisson-secrets-", dir="/var/lib") as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def bound(fresh, internet, tmp_path, kept):
    return Bound(fresh, internet, tmp_path, kept)


@pytest.fixture
def internet(tmp_path):
    one = world.World(tmp_path)
    yield one
    one.close()
