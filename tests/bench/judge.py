"""judge.py KEY TURNS NAME=PORT=LAUNCHER...: programs judged a second by POST /run_code, eight clients at a time, for each language that
all servers have, and the processor time that one takes of the launcher and all below it. The servers (a build, and one to compare it with)
and the floor, the same programs run unconfined, take turns of four seconds. Where the machine has other work, the times say more."""
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from turns import median, processor_s, rate

KEY, TURNS = sys.argv[1], int(sys.argv[2])
SERVERS = {name: (int(port), launcher) for name, port, launcher in (word.split("=") for word in sys.argv[3:])}
PROGRAMS = {"bash": "echo 1", "python": "print(1)", "cpp": '#include <cstdio>\nint main() { std::puts("1"); }'}


class Server:
    def __init__(self, port, launcher):
        self.port, self.launcher = port, launcher

    def processor_s(self):
        return processor_s(self.launcher)

    def runner(self, language):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps({"language": language, "code": PROGRAMS[language]})

        def run():
            connection.request("POST", "/run_code", body, {"X-AIO-API-Key": KEY, "Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
            assert answer["run_result"] and answer["run_result"]["stdout"] == "1\n", answer
        return run


class Floor:
    """A directory, the file and the program, and no wall."""

    @staticmethod
    def processor_s():
        return processor_s(str(os.getpid()))

    def runner(self, language):
        def run():
            with tempfile.TemporaryDirectory() as place:
                name = {"bash": "main.sh", "python": "main.py", "cpp": "main.cpp"}[language]
                pathlib.Path(place, name).write_text(PROGRAMS[language])
                if language == "cpp":
                    subprocess.run(["g++", "-std=c++17", "-O1", name, "-o", "main", "-pthread"], cwd=place, check=True)
                argv = {"bash": ["bash", name], "python": ["/usr/bin/python3", name], "cpp": ["./main"]}[language]
                done = subprocess.run(argv, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=True)
                assert done.stdout == b"1\n"
        return run


def main():
    everybody = {"floor": Floor(), **{name: Server(*where) for name, where in SERVERS.items()}}
    for language in os.environ.get("CAISSON_BENCH_LANGUAGES", "bash python cpp").split():
        try:
            for who in everybody.values():
                who.runner(language)()
        except (AssertionError, OSError) as why:
            print(f"{language}: left out: {why}")
            continue
        rates, times = {name: [] for name in everybody}, {name: [] for name in everybody}
        for _ in range(TURNS):
            for name, who in everybody.items():
                per_second, ms = rate(lambda: who.runner(language), who.processor_s)
                rates[name].append(per_second)
                times[name].append(ms)
        first = next(iter(SERVERS))
        for name, values in rates.items():
            ratio = f"   {first} / {name}: {median(rates[first]) / median(values):.2f} the rate, " \
                    f"{median(times[first]) / median(times[name]):.2f} the time" if name != first else ""
            print(f"{language:7} {name:8} {median(values):7.1f}/s ({min(values):.1f} to {max(values):.1f})   "
                  f"{median(times[name]):5.1f} ms each{ratio}", flush=True)


main()
