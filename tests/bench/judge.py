"""judge.py KEY TURNS NAME=PORT=LAUNCHER...: programs judged a second by POST /run_code, eight clients at a time, for each language that
all servers have, and the processor time that one takes of the launcher and all below it. The servers (a build, and one to compare it with)
and the floor, the same programs run unconfined, take turns of four seconds. Where the machine has other work, the times say more."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

KEY, TURNS = sys.argv[1], int(sys.argv[2])
SERVERS = {name: (int(port), launcher) for name, port, launcher in (word.split("=") for word in sys.argv[3:])}
CLIENTS, TURN_S = 8, 4
PROGRAMS = {"bash": "echo 1", "python": "print(1)", "cpp": '#include <cstdio>\nint main() { std::puts("1"); }'}


def processor_s(root):
    """Of a process, of what it has waited for, and of all that live below it."""
    stats = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            stats[entry] = fields[1], sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass  # it has ended meanwhile
    below, more = set(), {root}
    while more:
        below |= more
        more = {pid for pid, (parent, _) in stats.items() if parent in more} - below
    return sum(stats[pid][1] for pid in below if pid in stats)


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


def rate(who, language):
    def client(_):
        run, count = who.runner(language), 0
        while time.monotonic() < end:
            run()
            count += 1
        return count
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        used, begin = who.processor_s(), time.monotonic()
        end = begin + TURN_S
        count = sum(pool.map(client, range(CLIENTS)))
        return count / (time.monotonic() - begin), (who.processor_s() - used) * 1000 / count


def median(values):
    return sorted(values)[len(values) // 2]


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
                per_second, ms = rate(who, language)
                rates[name].append(per_second)
                times[name].append(ms)
        first = next(iter(SERVERS))
        for name, values in rates.items():
            ratio = f"   {first} / {name}: {median(rates[first]) / median(values):.2f} the rate, " \
                    f"{median(times[first]) / median(times[name]):.2f} the time" if name != first else ""
            print(f"{language:7} {name:8} {median(values):7.1f}/s ({min(values):.1f} to {max(values):.1f})   "
                  f"{median(times[name]):5.1f} ms each{ratio}", flush=True)


main()
