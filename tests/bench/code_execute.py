"""code_execute.py PORT KEY ROUNDS: python `print(1)` through /v1/code/execute from a prepared session, beside a bare interpreter that is warm
and forks for each run, unconfined. In turn, with a pause in which the next session is prepared."""
import http.client
import json
import os
import pathlib
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from latency import held, quantile  # noqa: E402

PORT, KEY, ROUNDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
PAUSE_S = 0.2
CODE = "print(1)"
JOB = struct.Struct("=I")
DONE = struct.Struct("=iI")


def exactly(connection, size):
    out = b""
    while len(out) < size:
        out += connection.recv(size - len(out)) or sys.exit("the other side is gone")
    return out


def zygote(connection):
    """A warm interpreter: forks for each job, and answers with its status and output."""
    import ast, base64, inspect, io, linecache, traceback, types  # noqa: E401, F401  what ours has imported, too
    while True:
        source = exactly(connection, JOB.unpack(exactly(connection, JOB.size))[0])
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(write, 1)
            os.close(read)
            exec(compile(source, "<code>", "exec"), {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)
        os.close(write)
        output = b""
        while part := os.read(read, 65536):
            output += part
        os.close(read)
        connection.sendall(DONE.pack(os.waitpid(child, 0)[1], len(output)) + output)


class Zygote:
    def __init__(self):
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            ours.close()
            try:
                zygote(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self.connection = ours

    def run(self):
        self.connection.sendall(JOB.pack(len(CODE)) + CODE.encode())
        status, size = DONE.unpack(exactly(self.connection, DONE.size))
        assert (status, exactly(self.connection, size)) == (0, b"1\n")


class Api:
    def __init__(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)

    def run(self, language="python", code=CODE):
        body = json.dumps({"language": language, "code": code})
        self.connection.request("POST", "/v1/code/execute", body, {"X-AIO-API-Key": KEY, "Content-Type": "application/json"})
        answer = json.loads(self.connection.getresponse().read())
        assert answer["data"]["stdout"] == "1\n", answer


def time_ms(work, *arguments):
    begin = time.monotonic()
    work(*arguments)
    return (time.monotonic() - begin) * 1e3


bare, api = Zygote(), Api()
times = {"bare fork": [], "code/execute": [], "code/execute, javascript": [], "back to back": []}
for _ in range(5):  # toolchains are asked for, and the first sessions prepared
    bare.run()
    api.run()
    api.run("javascript", "console.log(1)")
    time.sleep(PAUSE_S)
for _ in range(ROUNDS):
    times["bare fork"].append(time_ms(bare.run))
    times["code/execute"].append(time_ms(api.run))
    time.sleep(PAUSE_S)
    times["code/execute, javascript"].append(time_ms(api.run, "javascript", "console.log(1)"))
    time.sleep(PAUSE_S)
times["back to back"] = [time_ms(api.run) for _ in range(ROUNDS)]
for name, values in times.items():
    print(f"print(1), {name:24}  median {quantile(values, 0.5):7.2f} ms   p90 {quantile(values, 0.9):7.2f} ms   min {min(values):7.2f} ms")
p50 = quantile(times["code/execute"], 0.5)
ratio = p50 / quantile(times["bare fork"], 0.5)
print(f"median of code/execute in ms:              {p50:5.2f}   {held(p50, 15)}")
print(f"median of code/execute / bare warm fork:   {ratio:5.2f}   {held(ratio, 1.5)}")
