"""aio sandbox: what takes more than one request."""
from __future__ import annotations

import time

from .failure import ABSENT, DENIED, TIMEOUT, UNREACHABLE, Failure
from .text import columns

PAUSE = 0.5


def packages(client, options, out) -> int:
    kinds = [options.language] if options.language else ["python", "nodejs"]
    found = {kind: client.data("GET", "/v1/sandbox/packages/" + kind) for kind in kinds}
    out.show(found[kinds[0]] if options.language else found,
             lambda _: "\n\n".join(f"{kind}\n{listing(found[kind])}" if len(kinds) > 1 else listing(found[kind]) for kind in kinds))
    return 0


def listing(found) -> str:
    return columns([(one.get("name"), one.get("version")) for one in found or []])


def wait(client, options, out) -> int:
    """Until the server is ready. A server without /readyz is, once it answers /v1/sandbox."""
    limit = options.timeout if options.timeout is not None else 60.0
    end = time.monotonic() + limit
    while True:
        left = end - time.monotonic()
        try:
            try:
                ready = client.data("GET", "/readyz", seconds=max(min(left, 10.0), 0.1))
            except Failure as why:
                if why.code not in (ABSENT, DENIED):
                    raise
                ready = None
                client.envelope("GET", "/v1/sandbox", seconds=max(min(left, 10.0), 0.1))
            out.show(ready or {"status": "ready"}, lambda _: "ready")
            return 0
        except Failure as why:
            if why.code == DENIED:
                raise
            if time.monotonic() + PAUSE >= end:
                code = UNREACHABLE if why.code == UNREACHABLE else TIMEOUT
                raise Failure(code, f"not ready within {limit:g} s: {why.text}") from None
        client.close()
        time.sleep(PAUSE)
