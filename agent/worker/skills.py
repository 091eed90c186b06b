"""The skills of a workspace, for /v1/skills: folders with a SKILL.md each, below one folder in the home. The agent runs it in a session of the
domain `file`: python3 -I skills.py. Its input is a line of JSON, {"op", "root", ...}, and behind it the bytes of an upload. It prints one
JSON object: {"done": ...} or {"refused": text}. Whatever it reads may have been made to do harm: every size, count and depth has a bound."""
import contextlib
import datetime
import io
import json
import math
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import zipfile

MOST_UPLOAD = 16 << 20    # bytes
MOST_DIRECTORY = 4 << 20  # of a zip: what is read before its entries can be counted
MOST_ENTRIES = 10_000     # of a zip or a folder
MOST_FILE = 64 << 20      # unpacked
MOST_UNPACKED = 128 << 20
MOST_DEPTH = 16
MOST_SKILL_MD = 1 << 20
MOST_FRONT_MATTER = 64 << 10
MOST_NESTED = 16  # of values in front matter
MOST_SKILLS = 1000
MOST_METADATA = 4 << 20  # of all skills in one answer
MOST_COMMANDS = 8
MOST_RESULTS = 512 << 10
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAMES_HAVE = "a name has at most 64 letters, digits, '.', '_' and '-', and begins with a letter or digit"
IGNORED = ("__MACOSX", ".DS_Store")  # what macOS adds to archives


class Refused(Exception):
    """A failure whose words the client gets."""


def quoted(text) -> str:
    text = str(text)
    return json.dumps(text if len(text) <= 120 else text[:117] + "...")


def checked_name(name) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(f"a skill cannot have the name {quoted(name)}: {NAMES_HAVE}")
    return name


# --- SKILL.md ---

def loader():
    """PyYAML's safe loader without what lets a short text stand for a large one, or one key have two values."""
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent, index):
            if self.check_event(yaml.events.AliasEvent):
                raise Refused("aliases (*name) are not taken")
            self.depth += 1
            if self.depth > MOST_NESTED:
                raise Refused(f"it is nested more than {MOST_NESTED} deep")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node, deep=False):
            seen = set()
            for key, _ in node.value:
                if not isinstance(key.value, str):
                    raise Refused("a key is a list or a mapping")
                if key.value in seen:
                    raise Refused(f"the key {quoted(key.value)} is there twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return yaml, Loader


def plain(value):
    """A value of YAML as one of JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, dict):
        return {plain_text(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    return plain_text(value)


def plain_text(value) -> str:
    return str(value).encode(errors="replace").decode()


def parse_skill(text: str, where: str):
    """Front matter and the rest of a SKILL.md."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise Refused(f"the front matter of {where} has no end: a second line of three hyphens is missing")
    front = "".join(lines[1:end])
    if len(front.encode()) > MOST_FRONT_MATTER:
        raise Refused(f"the front matter of {where} is longer than {MOST_FRONT_MATTER} bytes")
    yaml, safe = loader()
    try:
        metadata = yaml.load(front, Loader=safe)
        metadata = {} if metadata is None else plain(metadata)
    except Refused as why:
        raise Refused(f"the front matter of {where} is not taken: {why}") from None
    except yaml.MarkedYAMLError as why:
        at = f"line {why.problem_mark.line + 2}: " if why.problem_mark else ""
        raise Refused(f"the front matter of {where} is no YAML: {at}{quoted(why.problem or why.context)}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as why:
        raise Refused(f"the front matter of {where} is no YAML: {quoted(why)}") from None
    if not isinstance(metadata, dict):
        raise Refused(f"the front matter of {where} is no mapping: it needs lines such as 'name: report'")
    return metadata, "".join(lines[end + 1:])


def read_regular(path: str, most: int) -> bytes:
    """A file's bytes; never through a link, from a device or a pipe."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Refused(f"{path} is no file")
        data = file.read(most + 1)
    if len(data) > most:
        raise Refused(f"{path} is larger than {most} bytes")
    return data


def skill_text(folder: str, where: str) -> str:
    try:
        return read_regular(os.path.join(folder, "SKILL.md"), MOST_SKILL_MD).decode("utf-8-sig")
    except UnicodeDecodeError as why:
        raise Refused(f"{where} is not UTF-8 (byte {why.start})") from None


def commands_of(folder: str, metadata: dict) -> list:
    """What a skill needs to be run once: its own words, and what its files of dependencies stand for."""
    said = metadata.get("dependency_commands") or []
    if not isinstance(said, list) or len(said) > MOST_COMMANDS:
        raise Refused(f"dependency_commands is a list of at most {MOST_COMMANDS} commands")
    commands = []
    for one in said:
        try:
            words = shlex.split(one) if isinstance(one, str) else one
        except ValueError as why:
            raise Refused(f"dependency_commands has {quoted(one)}, whose quotes do not close ({why})") from None
        if not isinstance(words, list) or not words or any(not isinstance(w, str) or "\0" in w or len(w) > 4096 for w in words):
            raise Refused("each of dependency_commands is a text, or a list of words")
        commands.append(words[:256])
    if os.path.isfile(os.path.join(folder, "requirements.txt")):
        commands.append(["pip", "install", "-r", "requirements.txt"])
    if os.path.isfile(os.path.join(folder, "package.json")):
        commands.append(["npm", "install", "--no-audit", "--no-fund"])
    return commands


# --- where skills come from ---

def parts_of(name: str) -> list:
    """The segments of an entry's name, if it stays below where it is unpacked."""
    wrong = ("is absolute" if name.startswith("/") or re.match(r"[A-Za-z]:", name) else "has a backslash" if "\\" in name else
             "has a control character" if any(ord(c) < 32 or ord(c) == 127 for c in name) else "")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not wrong and ".." in parts:
        wrong = "leads out of its folder"
    if not wrong and (len(parts) > MOST_DEPTH or any(len(part.encode(errors="replace")) > 255 for part in parts)):
        wrong = f"is too long, or more than {MOST_DEPTH} folders deep"
    if wrong:
        raise Refused(f"the archive's entry {quoted(name)} {wrong}")
    return parts


def open_zip(data: bytes) -> zipfile.ZipFile:
    at = data.rfind(b"PK\5\6", max(0, len(data) - 65557))
    if at < 0 or len(data) < at + 22:
        raise Refused("the file is no zip archive")
    size = int.from_bytes(data[at + 12:at + 16], "little")
    count = int.from_bytes(data[at + 10:at + 12], "little")
    if size > MOST_DIRECTORY or MOST_ENTRIES < count:
        raise Refused(f"the archive has more than {MOST_ENTRIES} entries")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as why:
        raise Refused(f"the zip archive cannot be read: {why}") from None
    if len(archive.infolist()) > MOST_ENTRIES:
        raise Refused(f"the archive has more than {MOST_ENTRIES} entries")
    return archive


def entries_of(archive: zipfile.ZipFile) -> dict:
    """Its files by their segments, checked before anything is written."""
    files, folders, total = {}, set(), 0
    for info in archive.infolist():
        parts = tuple(parts_of(info.filename))
        if not parts or parts[0] in IGNORED or parts[-1] in IGNORED:
            continue
        kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == 3 else 0
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Refused(f"the archive's entry {quoted(info.filename)} is a link or a special file")
        if info.flag_bits & 1:
            raise Refused(f"the archive's entry {quoted(info.filename)} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused(f"the archive's entry {quoted(info.filename)} is packed by another method than deflate")
        folders.update(parts[:n] for n in range(1, len(parts)))
        if info.is_dir():
            folders.add(parts)
            continue
        if parts in files:
            raise Refused(f"the archive has {quoted(info.filename)} twice")
        total += info.file_size
        if info.file_size > MOST_FILE or total > MOST_UNPACKED:
            raise Refused(f"the archive is larger than {MOST_UNPACKED >> 20} MiB when unpacked, or one of its files than {MOST_FILE >> 20} MiB")
        files[parts] = info
    both = next((parts for parts in files if parts in folders), None)
    if both:
        raise Refused(f"the archive has {quoted('/'.join(both))} both as a file and as a folder")
    return files


def unpack(archive: zipfile.ZipFile, staging: str) -> list:
    """Unpacks each skill into a folder of its own; returns (folder, name where the archive has one, where its SKILL.md is)."""
    files, out, left = entries_of(archive), [], MOST_UNPACKED
    homes = {parts[:-1] for parts in files if parts[-1] == "SKILL.md"}
    homes = sorted(home for home in homes if not any(home[:n] in homes for n in range(len(home))))
    if not homes:
        raise Refused("the archive has no SKILL.md: each skill is a folder with a file of that name")
    if len(homes) > MOST_SKILLS:
        raise Refused(f"the archive has more than {MOST_SKILLS} skills")
    made = {home: os.path.join(staging, str(n)) for n, home in enumerate(homes)}
    for home, folder in made.items():
        os.mkdir(folder)
        out.append((folder, home[-1] if home else "", "/".join((*home, "SKILL.md"))))
    for parts, info in files.items():
        home = next((parts[:n] for n in range(len(parts)) if parts[:n] in made), None)
        if home is None:
            continue
        to = os.path.join(made[home], *parts[len(home):])
        os.makedirs(os.path.dirname(to), exist_ok=True)
        mode = 0o755 if info.create_system == 3 and info.external_attr >> 16 & 0o100 else 0o644
        try:
            with archive.open(info) as packed, open(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
                while piece := packed.read(1 << 16):
                    left -= len(piece)
                    if left < 0:
                        raise Refused(f"the archive is larger than {MOST_UNPACKED >> 20} MiB when unpacked")
                    file.write(piece)
        except (zipfile.BadZipFile, zipfile.zlib.error, EOFError, RuntimeError, NotImplementedError) as why:
            raise Refused(f"the archive's entry {quoted(info.filename)} cannot be unpacked: {why}") from None
    return out


def copied(source: str, to: str):
    """A folder's files, without links and special files, within the bounds of an archive."""
    count = total = 0
    os.mkdir(to)
    for folder, folders, files in os.walk(source):
        below = os.path.relpath(folder, source)
        if below.count("/") >= MOST_DEPTH:
            raise Refused(f"{folder} lies more than {MOST_DEPTH} folders deep")
        for name in folders + files:
            path, count = os.path.join(folder, name), count + 1
            mode = os.lstat(path).st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise Refused(f"{path} is a link or a special file; a skill has files and folders only")
            if count > MOST_ENTRIES:
                raise Refused(f"{source} has more than {MOST_ENTRIES} files and folders")
            target = os.path.join(to, below, name)
            if stat.S_ISDIR(mode):
                os.mkdir(target)
                continue
            data = read_regular(path, min(MOST_FILE, MOST_UNPACKED - total))
            total += len(data)
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if mode & 0o100 else 0o644), "wb") as file:
                file.write(data)


def from_bytes(data: bytes, filename: str, staging: str) -> list:
    stem = re.sub(r"\.[^.]*$", "", re.split(r"[/\\]", filename or "")[-1])
    if data[:2] == b"PK":
        return [(folder, name or stem, where) for folder, name, where in unpack(open_zip(data), staging)]
    if filename and filename.lower().endswith(".zip"):
        raise Refused("the file is no zip archive")
    if len(data) > MOST_SKILL_MD:
        raise Refused(f"the file is neither a zip archive nor a SKILL.md of at most {MOST_SKILL_MD} bytes")
    folder = os.path.join(staging, "0")
    os.mkdir(folder)
    with open(os.path.join(folder, "SKILL.md"), "wb") as file:
        file.write(data)
    return [(folder, "" if stem.upper() == "SKILL" else stem, "SKILL.md")]


def has_skill(folder: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.lstat(os.path.join(folder, "SKILL.md")).st_mode)
    return False


def from_path(path: str, staging: str) -> list:
    if not os.path.isdir(path):
        folder, name = os.path.split(path)
        return from_bytes(read_regular(path, MOST_UPLOAD), os.path.basename(folder) if name == "SKILL.md" else name, staging)
    folders = [path] if has_skill(path) else [
        one.path for one in sorted(os.scandir(path), key=lambda e: e.name) if one.is_dir(follow_symlinks=False) and has_skill(one.path)]
    if not folders:
        raise Refused(f"neither {path} nor a folder in it has a SKILL.md")
    if len(folders) > MOST_SKILLS:
        raise Refused(f"{path} has more than {MOST_SKILLS} skills")
    out = []
    for n, folder in enumerate(folders):
        copied(folder, os.path.join(staging, str(n)))
        out.append((os.path.join(staging, str(n)), os.path.basename(os.path.realpath(folder)), os.path.join(folder, "SKILL.md")))
    return out


# --- the folder of all skills ---

def in_home(path: str) -> str:
    return os.path.normpath(os.path.join(os.environ["HOME"], os.path.expanduser(path)))


def results_file(root: str, name: str) -> str:
    return os.path.join(root, ".results", name + ".json")


def results_of(root: str, name: str) -> list:
    with contextlib.suppress(OSError, ValueError, Refused, RecursionError):
        results = json.loads(read_regular(results_file(root, name), MOST_RESULTS))
        if isinstance(results, list):
            return results
    return []


def described(root: str, name: str) -> dict:
    folder = os.path.join(root, name)
    metadata, _ = parse_skill(skill_text(folder, f"{name}/SKILL.md"), f"{name}/SKILL.md")
    return {"name": name, "path": folder, "metadata": metadata, "dependency_commands": results_of(root, name)}


def names_in(root: str) -> list:
    try:
        found = [one.name for one in os.scandir(root) if NAME.fullmatch(one.name) and one.is_dir(follow_symlinks=False) and has_skill(one.path)]
    except FileNotFoundError:
        return []
    return sorted(found)


def existing(root: str, name) -> str:
    if not isinstance(name, str) or name not in names_in(root):
        raise Refused(f"there is no skill {quoted(name)}")
    return name


@contextlib.contextmanager
def staging_in(root: str):
    """A folder beside the skills, so that a finished one is renamed into its place. Those of runs that were killed are removed."""
    os.makedirs(root, exist_ok=True)
    for one in os.scandir(root):
        if one.name.startswith(".staging-") and one.is_dir(follow_symlinks=False):
            shutil.rmtree(one.path, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=".staging-", dir=root)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove(root: str, name: str):
    with tempfile.TemporaryDirectory(prefix=".staging-", dir=root, ignore_cleanup_errors=True) as folder:
        os.rename(os.path.join(root, name), os.path.join(folder, name))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(results_file(root, name))


def register(job, root: str, body: bytes):
    path = in_home(job["path"]) if job.get("path") else None
    if path and os.path.dirname(os.path.realpath(path)) == os.path.realpath(root) and has_skill(path) and not job.get("name"):
        name = checked_name(os.path.basename(os.path.realpath(path)))  # it is in its place already
        one = described(root, name)
        return [{**one, "commands": commands_of(one["path"], one["metadata"])}]
    with staging_in(root) as staging:
        found = from_path(path, staging) if path else from_bytes(body, job.get("filename", ""), staging)
        if job.get("name") and len(found) > 1:
            raise Refused(f"there are {len(found)} skills, and one name for all of them: {quoted(job['name'])}")
        ready = {}
        for folder, stem, where in found:
            metadata, _ = parse_skill(skill_text(folder, where), where)
            name = job.get("name") or metadata.get("name") or stem
            if not name:
                raise Refused(f"the skill of {where} has no name: its front matter has none, and neither has the form")
            checked_name(name)
            if name in ready:
                raise Refused(f"two skills have the name {quoted(name)}: {ready[name][2]} and {where}")
            ready[name] = (folder, metadata, where, commands_of(folder, metadata))
        if len(set(names_in(root)) | set(ready)) > MOST_SKILLS:
            raise Refused(f"there would be more than {MOST_SKILLS} skills; delete some first")
        done = []
        for name, (folder, metadata, _, commands) in ready.items():
            target = os.path.join(root, name)
            if os.path.lexists(target):
                os.rename(target, os.path.join(staging, "old-" + name))
            os.rename(folder, target)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(results_file(root, name))
            done.append({"name": name, "path": target, "metadata": metadata, "commands": commands})
    return done


def listed(job, root: str):
    wanted = set(job["names"]) if job.get("names") else None
    skills, problems, size = [], [], 0
    for name in names_in(root)[:MOST_SKILLS]:
        if wanted is not None and name not in wanted:
            continue
        try:
            one = described(root, name)
        except (Refused, OSError) as why:
            problems.append(f"{name}: {why}"[:300])
            continue
        size += len(json.dumps(one))
        if size > MOST_METADATA:
            raise Refused(f"the metadata of these skills are more than {MOST_METADATA >> 20} MiB; ask for some of them by `names`")
        skills.append(one)
    return {"skills": skills, "problems": problems[:8]}


def content(job, root: str):
    name = existing(root, job["name"])
    _, text = parse_skill(skill_text(os.path.join(root, name), f"{name}/SKILL.md"), f"{name}/SKILL.md")
    return {"name": name, "path": os.path.join(root, name), "content": text}


def delete(job, root: str):
    name = existing(root, job["name"])
    try:
        one = described(root, name)
    except Refused:
        one = {"name": name, "path": os.path.join(root, name), "metadata": {}, "dependency_commands": []}
    remove(root, name)
    return one


def clear(_, root: str):
    names = names_in(root)
    for name in names:
        remove(root, name)
    return {"deleted": names}


def keep_results(job, root: str):
    name = existing(root, job["name"])
    os.makedirs(os.path.join(root, ".results"), exist_ok=True)
    with open(results_file(root, name), "w", encoding="utf-8") as file:
        json.dump(job["results"], file)
    return {}


OPERATIONS = {"list": listed, "content": content, "delete": delete, "clear": clear, "keep_results": keep_results}


def main():
    job = json.loads(sys.stdin.buffer.readline())
    root = in_home(job["root"])
    try:
        if job["op"] == "register":
            done = register(job, root, sys.stdin.buffer.read())
        else:
            done = OPERATIONS[job["op"]](job, root)
        answer = {"done": done}
    except Refused as why:
        answer = {"refused": str(why)}
    except OSError as why:
        answer = {"refused": f"{why.strerror}: {why.filename or root}"}
    except ModuleNotFoundError as why:
        answer = {"refused": f"the Python module {why.name} is not installed (Debian's package python3-{why.name})"}
    print(json.dumps(answer))


main()
