"""Screenshots: bytes into a file, which an older picture gives way to."""
from __future__ import annotations

import os

from . import local, transfer
from .text import size, visible


def save(client, options, out) -> int:
    from .call import request_of

    _, path, _, query = request_of(options.command, options)
    with local.incoming(options.output, True) as target:
        headers = transfer.download(client, path, query, target, options.output, 120.0)
        target.commit()
    if options.output == "-":
        return 0
    made = {"path": options.output, "bytes": os.path.getsize(options.output), "content_type": headers.get("content-type")}
    for name in ("width", "height"):
        if headers.get("x-image-" + name, "").isdecimal():
            made[name] = int(headers["x-image-" + name])
    extent = f"  {made['width']}x{made['height']}" if "width" in made else ""
    out.show(made, lambda _: f"{visible(options.output)}{extent}  {size(made['bytes'])}")
    return 0
