"""One browser for the tests that only use it, a fresh place for those that end or replace it."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "escape")]
import cdp  # noqa: E402


@pytest.fixture(scope="session")
def here():
    if why := cdp.missing():
        pytest.skip(why)


@pytest.fixture(scope="module")
def shared(here):
    place = cdp.Place()
    try:
        place.start().event("ready")
        yield place
    finally:
        place.end()


@pytest.fixture
def fresh(here):
    place = cdp.Place()
    try:
        yield place
    finally:
        place.end()
