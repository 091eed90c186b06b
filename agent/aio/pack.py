#!/usr/bin/env python3
"""pack.py FILE: the package as one executable file, a zip archive that Python runs. The same sources give the same bytes."""
import os
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
THEN = (1980, 1, 1, 0, 0, 0)


def pack(target: pathlib.Path):
    new = target.with_name(target.name + ".new")
    with new.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            def add(name, source):
                entry = zipfile.ZipInfo(name, THEN)
                entry.external_attr, entry.create_system = 0o100644 << 16, 3
                archive.writestr(entry, source.read_bytes(), zipfile.ZIP_DEFLATED)

            add("__main__.py", HERE / "__main__.py")
            for source in sorted(HERE.glob("*.py")):
                if source.name not in ("pack.py", "manual.py", "__main__.py"):
                    add("aio/" + source.name, source)
    new.chmod(0o755)
    os.replace(new, target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: pack.py FILE")
    pack(pathlib.Path(sys.argv[1]))
