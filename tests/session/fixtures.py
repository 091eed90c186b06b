"""Fixtures of the session and guest legs, each of which has its own `launcher`; their conftest.py import them."""

import pytest


@pytest.fixture
def control(launcher):
    one = launcher.control()
    yield one
    one.close()


@pytest.fixture
def session(control):
    one = control.create()
    yield one
    control.end(one)
