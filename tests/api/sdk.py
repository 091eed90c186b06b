"""The official Python SDK, unmodified, on a client whose every response is checked (conftest.Api.check): which method was called, which
operations it made, and how many of their answers were valid."""
import collections
import inspect

import httpx

CALLED: dict[str, collections.Counter] = {}  # "bash.exec" -> operations of the contract with valid answers, as "POST /v1/bash/exec"


class Recorded:
    """One area of the SDK. Nothing of it is changed; its methods are looked at while they run."""

    def __init__(self, client, area: str, contract):
        self.client, self.area, self.contract = client, area, contract

    def __getattr__(self, name):
        method, seen = getattr(self.client, name), CALLED.setdefault(f"{self.area}.{name}", collections.Counter())

        def call(*args, **kwargs):
            before = collections.Counter(self.contract.checked)
            try:
                return method(*args, **kwargs)
            finally:
                seen.update(collections.Counter(self.contract.checked) - before)
        return call

    def uncalled(self) -> set[str]:
        every = {name for name, _ in inspect.getmembers(self.client, inspect.ismethod) if not name.startswith("_")}
        return {name for name in every if f"{self.area}.{name}" not in CALLED}


def sandbox_of(api):
    """The SDK's client for a server; skip without the SDK before."""
    from agent_sandbox import Sandbox
    client = httpx.Client(timeout=60, trust_env=False, event_hooks={"response": [api.check]})
    return Sandbox(base_url=api.url, headers={"X-AIO-API-Key": api.key} if api.key else {}, httpx_client=client)


def table() -> list[str]:
    """A line for each method that was called."""
    return [f"{name:36} {', '.join(f'{operation} ({count} valid)' for operation, count in sorted(seen.items())) or 'a stream or a file'}"
            for name, seen in sorted(CALLED.items())]
