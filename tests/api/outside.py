"""The internet of the egress tests, for launchers of these. Skips a module where it cannot be made."""
import os
import pathlib
import shutil
import sys

import pytest

if os.geteuid() != 0 or "CAISSON_URL" in os.environ or not shutil.which("curl"):
    pytest.skip("needs root, curl and a server of its own", allow_module_level=True)

SESSION = pathlib.Path(__file__).parents[1] / "session"
sys.path += [str(SESSION), str(SESSION / "egress")]
import world  # noqa: E402
from proxies import HttpProxy  # noqa: E402
from world import OTHER, PRIVATE, PUBLIC  # noqa: E402

__all__ = ["OTHER", "PRIVATE", "PUBLIC", "HttpProxy", "world"]
