"""kernels.py PORT KEY: `1+1` in a living notebook session over HTTP, beside the same over jupyter_client with an unconfined kernel, in
turn; then how long a first cell takes, with a kernel that was ready and with one that had to be started."""
import http.client
import json
import os
import sys
import time

from jupyter_client.manager import KernelManager
from latency import held, quantile

ROUNDS, FIRSTS = 300, 5


class Api:
    def __init__(self, port, key):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {"X-AIO-API-Key": key, "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        answer = json.loads(self.connection.getresponse().read())
        assert answer["success"], answer
        return answer["data"]

    def two(self, session):
        done = self.call("POST", "/v1/jupyter/execute", {"code": "1+1", "session_id": session})
        assert done["outputs"][0]["data"]["text/plain"] == "2", done


def two_unconfined(client):
    results = []
    client.execute_interactive("1+1", output_hook=lambda m: m["msg_type"] == "execute_result" and results.append(m), timeout=60)
    assert results[0]["content"]["data"]["text/plain"] == "2"


def timed(work, *arguments):
    began = time.monotonic()
    work(*arguments)
    return (time.monotonic() - began) * 1e3


api = Api(int(sys.argv[1]), sys.argv[2])
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # as the bridge starts its kernel
manager = KernelManager(transport="ipc")
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
try:
    times = {"jupyter_client": [], "/v1/jupyter/execute": []}
    for round_ in range(ROUNDS + 20):
        pair = timed(two_unconfined, client), timed(api.two, "bench")
        if round_ >= 20:  # both are warm
            for name, value in zip(times, pair):
                times[name].append(value)
    for name, values in times.items():
        print(f"1+1, {name:20}  median {quantile(values, 0.5):6.2f} ms   p90 {quantile(values, 0.9):6.2f}   p99 {quantile(values, 0.99):6.2f}")
    ratio = quantile(times["/v1/jupyter/execute"], 0.5) / quantile(times["jupyter_client"], 0.5)
    print(f"median / median: {ratio:.2f}   {held(ratio, 1.5)}")
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    del client, manager

firsts = {"ready": [], "not ready": []}
for _ in range(FIRSTS):
    time.sleep(5)  # the pool fills again
    for name in firsts:  # the second comes before it has
        firsts[name].append(timed(api.two, None))
api.call("DELETE", "/v1/jupyter/sessions")
for name, values in firsts.items():
    print(f"first cell of a session, kernel {name:10}  median {quantile(values, 0.5):7.1f} ms   min {min(values):7.1f}   max {max(values):7.1f}")
