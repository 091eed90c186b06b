import world
from world import PUBLIC, echo, read_all, rule


def test_smoke(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    internet.serve(PUBLIC, 2222, echo)
    internet.open(rule("api.test", ports=[2222]), port=2222)
    client = internet.connect("api.test", 2222)
    client.sendall(b"hello")
    assert client.recv(10) == b"hello"
    client.shutdown(1)
    assert read_all(client) == b""
    print(internet.record(event="connection"))
