"""browser_soak.py [MINUTES]: a page that animates, with a viewer, a client of /cdp and page operations; what is kept, each minute. All
of it should be flat."""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "api"), str(pathlib.Path(__file__).parents[1])]
from browser import SPINS, Http, below, lines, ours_pids, pss_mb  # noqa: E402
from launcher_process import Launcher  # noqa: E402

MINUTES = int(sys.argv[1]) if len(sys.argv) > 1 else 30
VIEWER = pathlib.Path(__file__).with_name("browser.py")


def rss_kb(pid):
    return int(re.search(r"^VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def figures(launcher):
    table = lines()
    whole = below({launcher.process.pid}, table)
    own = {name: next(pid for pid in whole if re.match(rf"\S*{name}( |$)", table[pid][1])) for name in ("caisson-launcher", "caisson-agent")}
    spaces = set()
    for pid in whole:
        for kind in ("user", "mnt", "pid", "net", "ipc"):
            try:
                spaces.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                continue
    return {"launcher KB": rss_kb(own["caisson-launcher"]), "agent KB": rss_kb(own["caisson-agent"]),
            "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in own.values()), "processes": len(whole), "namespaces": len(spaces),
            "sessions MB": round(pss_mb(ours_pids(launcher, table)))}


def work(launcher, over):
    """What a program asks for meanwhile."""
    api = Http(launcher)
    while not over.is_set():
        for path in ("/v1/browser/screenshot?format=jpeg", "/v1/browser/info", "/json/list"):
            api.ask("GET", path)
        api.done("POST", "/v1/browser/page/evaluate", {"expression": "document.title"})
        time.sleep(0.5)


def main():
    launcher = Launcher()
    try:
        Http(launcher).done("POST", "/v1/browser/page/navigate", {"url": SPINS})
        over = threading.Event()
        viewer = subprocess.Popen([sys.executable, VIEWER, "--watch", str(launcher.port), launcher.key, str(60 * MINUTES + 120), "1"])
        asking = threading.Thread(target=work, args=(launcher, over), daemon=True)
        asking.start()
        time.sleep(30)
        for minute in range(MINUTES + 1):
            assert asking.is_alive() and viewer.poll() is None, "the program or the viewer has ended"
            print(f"{minute:3} min  " + "  ".join(f"{name} {value}" for name, value in figures(launcher).items()), flush=True)
            time.sleep(60 if minute < MINUTES else 0)
        viewer.kill()
        over.set()
        asking.join(60)
    finally:
        launcher.close()


if __name__ == "__main__":
    main()
