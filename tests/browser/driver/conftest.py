"""One Chromium, one driver and one web server for the tests that only look; what breaks them makes its own."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from driven_chromium import Chromium  # noqa: E402
from driver_process import Driver  # noqa: E402
from site_server import Site  # noqa: E402


def pytest_collection_modifyitems(items):
    """What clients see of the driver is in tests/api/test_pages.py, which always runs, as its parts' tests do: they take a second."""
    if os.environ.get("CAISSON_TEST_FULL"):
        return
    here = pathlib.Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name != "test_page_driver_parts.py":
            item.add_marker(pytest.mark.skip(reason="the page driver by itself: scripts/test full"))


@pytest.fixture(scope="session")
def site():
    server = Site()
    yield server
    server.close()


@pytest.fixture(scope="session")
def shared():
    chromium = Chromium()
    driver = Driver(chromium.socket)
    driver.chromium = chromium
    yield driver
    driver.close()
    chromium.close()


@pytest.fixture
def page(shared, site):
    """The driver with one blank tab. page.show(html): a page of that content is open."""
    for index in range(len(shared("tabs").data) - 1, 0, -1):
        shared("tab_close", index=index)
    assert shared("navigate", url="about:blank")["ok"]

    def show(html, path=None):
        address = site.put(html, path)
        assert shared("navigate", url=address)["ok"]
        return address
    shared.show = show
    shared.site = site
    return shared


@pytest.fixture
def fresh(site):
    """A Chromium of one's own; `fresh()` starts another driver for it."""
    chromium, drivers = Chromium(), []

    def start():
        drivers.append(Driver(chromium.socket))
        drivers[-1].chromium = chromium
        return drivers[-1]
    start.chromium = chromium
    yield start
    for driver in drivers:
        driver.close()
    chromium.close()
