"""What the benches share that let servers take turns: eight clients at a time, calls a second, and processor time."""
import concurrent.futures
import os
import pathlib
import time

CLIENTS, TURN_S = 8, 4


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


def rate(runner, used_s):
    """runner(): one client's call. Calls a second, and milliseconds of used_s() each."""
    def client(_):
        run, count = runner(), 0
        while time.monotonic() < end:
            run()
            count += 1
        return count
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        used, begin = used_s(), time.monotonic()
        end = begin + TURN_S
        count = sum(pool.map(client, range(CLIENTS)))
        return count / (time.monotonic() - begin), (used_s() - used) * 1000 / count


def median(values):
    return sorted(values)[len(values) // 2]
