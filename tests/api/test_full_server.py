"""A server whose 2,048 connections somebody tries to take: probes are answered, others find places, and one credential has a half at
most. Clients are addresses of the loopback network."""
import asyncio
import collections
import multiprocessing
import resource
import socket
import time

import pytest
from conftest import Api
from proxied import SAYS, app, saying
from test_auth import UPGRADE

HALF = 1024  # Limits::under_way_of_one


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, before[1])))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def status(port: int, address: str, request: bytes) -> str:
    """Of one request on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), 30, (address, 0)) as one:
        one.sendall(request)
        return one.recv(20)[9:12].decode()


def probe(port: int, address: str) -> str:
    return status(port, address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")


def test_one_token_does_not_take_every_place(launch):
    launcher = launch()
    api = Api(launcher.url, launcher.key)
    shell = api.data("/v1/shell/sessions/create")["session_id"]
    token = api.data("/v1/tokens", {"label": "many", "seconds": 600, "scopes": ["shell"], "path": "/v1/shell/ws"})
    request = Api(launcher.url, token["token"]).request(f"GET /v1/shell/ws?session_id={shell}&readonly=1", "", *UPGRADE)
    kept, seen = [], collections.Counter()
    try:
        for address in ("127.0.0.1", "127.0.0.2"):
            for _ in range(600):
                one = socket.create_connection(("127.0.0.1", launcher.port), 60, (address, 0))
                kept.append(one)
                one.sendall(request)
                seen[one.recv(20)[9:12]] += 1
        assert seen == {b"101": HALF, b"429": 1200 - HALF}, seen
        assert {probe(launcher.port, f"127.0.0.{n}") for n in (1, 2, 3)} == {"200"}
        assert api.bash("echo here")["stdout"] == "here\n", "another credential, from the same address"
        # Its end gives all of them back.
        assert api.http.delete(f"/v1/tokens/{token['id']}").status_code == 200
        end = time.monotonic() + 60
        for one in kept[:600:50]:
            one.settimeout(max(0.1, end - time.monotonic()))
            while one.recv(65536):
                pass
    finally:
        for one in kept:
            one.close()


def test_a_token_of_one_port_leaves_previews_to_others(api):
    with app(api, SAYS) as port:
        token = api.data("/v1/tokens", {"label": f"port-{port}", "seconds": 600, "port": port})
        request = Api(api.url, token["token"]).request("GET " + saying(port, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "w"))
        kept = [api.raw() for _ in range(140)]
        try:
            for one in kept:
                one.send(request)
            answers = [one.head().status for one in kept]
            assert (answers.count(200), answers.count(429)) == (128, 12)
            assert api.http.get(saying(port, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).text == "ok"
        finally:
            for one in kept:
                one.socket.close()
            api.http.delete(f"/v1/tokens/{token['id']}")


def hold_places(port: int, address: str, request: bytes, until):
    """1,100 clients without a key, each of which stays after its answer for as long as it may."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))

    async def one():
        while not until.is_set():
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
                writer.write(request)
                refused = (await reader.read(15))[9:12] == b"503"
                await asyncio.sleep(0.05 if refused else 2)
                writer.close()
            except OSError:
                await asyncio.sleep(0.05)

    async def all_of_them():
        await asyncio.gather(*[one() for _ in range(1100)])
    asyncio.run(all_of_them())


@pytest.mark.parametrize("request_", [b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n",
                                      b"GET /v1/x HTTP/1.1\r\nHost: x\r\n"], ids=["bodies that do not come", "unfinished heads"])
@pytest.mark.parametrize("addresses, of", [(("127.0.0.1", "127.0.0.2"), "127.0.0.9"), (("127.0.0.1",), "127.0.0.1")],
                         ids=["two addresses", "the probe's own address"])
def test_clients_without_a_key_do_not_take_the_places_of_probes(launch, addresses, of, request_):
    launcher, until = launch(CAISSON_REQUESTS_PER_SECOND="0"), multiprocessing.Event()
    attackers = [multiprocessing.Process(target=hold_places, args=(launcher.port, address, request_, until)) for address in addresses]
    seen, took = collections.Counter(), []
    try:
        for attacker in attackers:
            attacker.start()
        time.sleep(2.5)
        began = time.monotonic()
        while (asked := time.monotonic()) < began + 4 or (len(took) < 20 and asked < began + 100):
            try:
                seen[probe(launcher.port, of)] += 1
            except OSError as why:
                seen[type(why).__name__] += 1
            took.append(time.monotonic() - asked)
            time.sleep(0.02)
    finally:
        until.set()
        for attacker in attackers:
            attacker.join(5)
            attacker.kill()
        launcher.close()
    # One that this machine keeps from asking after it has connected makes room for others: a few of hundreds, and none is told 503.
    cut = seen[""] + seen["ConnectionResetError"]
    assert seen["200"] >= max(20, 20 * cut) and set(seen) <= {"200", "", "ConnectionResetError"}, seen
    assert sorted(took)[len(took) // 2] < 3, took  # who waits for a place waits as long as an attacker may stay; a slow machine is not that slow
