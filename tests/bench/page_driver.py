#!/usr/bin/env python3
"""What an operation of the page driver takes with a real Chromium, in milliseconds, and what memory the driver has. It asserts nothing.

    page_driver.py [ROUNDS]
"""
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "browser/driver"))
from driven_chromium import Chromium  # noqa: E402
from driver_process import Driver  # noqa: E402
from site_server import Site  # noqa: E402

PAGE = "<title>T</title><input id=a><button id=b onclick='this.textContent = Date.now()'>b</button><p>" + "words " * 200


def main(rounds):
    site, chromium = Site(), Chromium()
    started = time.perf_counter()
    driver = Driver(chromium.socket)
    try:
        driver("tabs").data
        print(f"start to first answer {1000 * (time.perf_counter() - started):8.1f} ms")
        address = site.put(PAGE)
        driver("navigate", url=address).data
        operations = {
            "evaluate document.title": ("evaluate", {"expression": "document.title"}), "html": ("html", {}), "text": ("text", {}),
            "fill": ("fill", {"selector": "#a", "text": "value"}), "click": ("click", {"selector": "#b"}), "navigate": ("navigate", {"url": address}),
            "screenshot png": ("screenshot", {}), "screenshot jpeg": ("screenshot", {"format": "jpeg"}), "elements": ("elements", {}),
            "markdown": ("markdown", {}), "tabs": ("tabs", {})}
        for name, (op, members) in operations.items():
            took = []
            for _ in range(rounds):
                begun = time.perf_counter()
                driver(op, **members).data
                took.append(1000 * (time.perf_counter() - begun))
            print(f"{name:24} p50 {statistics.median(took):8.1f} ms")
        pages = pathlib.Path(f"/proc/{driver.process.pid}/smaps_rollup").read_text().splitlines()
        print(", ".join(" ".join(line.split()) for line in pages if line.startswith(("Rss:", "Pss:"))))
    finally:
        driver.close()
        chromium.close()
        site.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
