#!/usr/bin/env python3
"""Runtime.evaluate of "1+1": Chromium's bare pipe, the socket of caisson-cdp, and caisson-relay before it, in turn with one browser
each. Prints the medians and their ratios: the figures of a shared machine mean little, the ratios more."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "browser/cdp"))
import cdp  # noqa: E402


class Bare(cdp.Client):
    """Chromium itself, with the flags that matter."""

    def __init__(self, place):
        self.unread, self.last, self.events, self.ended, self.timeout = b"", 0, [], False, cdp.WAIT_S
        (in_r, self.out), (self.in_, out_w) = os.pipe(), os.pipe()

        def ends():
            for source, target in ((in_r, 100), (out_w, 101), (100, 3), (101, 4)):
                os.dup2(source, target)
            os.closerange(5, 200)

        argv = [*cdp.AS_USER, str(cdp.CHROMIUM), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={place.run}/bare", "--disable-gpu"]
        self.process = subprocess.Popen(argv, preexec_fn=ends, close_fds=False, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": str(place.folder / "home")})
        os.close(in_r), os.close(out_w)

    def close(self):
        self.process.kill()
        self.process.wait()


def measure(client, session, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        client.call("Runtime.evaluate", {"expression": "1+1"}, session)
        times.append((time.perf_counter_ns() - begin) / 1000)
    return times


def main():
    if why := cdp.missing():
        sys.exit(f"cannot measure here: {why}")
    rounds, count = (int(sys.argv[1]) if len(sys.argv) > 1 else 10), 200
    place = cdp.Place()
    bare = Bare(place)
    try:
        place.start().event("ready")
        clients = {"bare pipe": bare, "socket": place.client(), "socket + relay": place.client(relay=True)}
        sessions = {name: one.tab()[1] for name, one in clients.items()}
        times = {name: [] for name in clients}
        for _ in range(rounds):
            for name, one in clients.items():
                times[name] += measure(one, sessions[name], count)
        base = statistics.median(times["bare pipe"])
        for name, all_of_it in times.items():
            median = statistics.median(all_of_it)
            print(json.dumps({"way": name, "p50_us": round(median, 1), "best_us": round(min(all_of_it), 1), "ratio": round(median / base, 2)}))
    finally:
        bare.close()
        place.end()


if __name__ == "__main__":
    main()
