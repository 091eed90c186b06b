"""Text that is not UTF-8, for str_replace_editor. Run by caisson-file-worker inside the session; the bytes are its standard input:
    python3 -I text_encoding.py decode [NAME]   prints the encoding's name, and the text as UTF-8; NAME is tried first
    python3 -I text_encoding.py encode NAME     prints "ok" and the bytes, or "no" and the first character that NAME lacks
A full stop follows; anything after it is ignored. An encoding counts only if it reproduces the same bytes and leaves ASCII unchanged."""
import sys

MOST_LOOKED_AT = 32 << 10  # bytes of the lines that are not ASCII
LEAST_SURE = 0.6
# Replacements for a detected encoding, if they decode: a superset of it, or one that is far more common.
RATHER = {"gb2312": "gb18030", "euc-kr": "cp949", "shift_jis": "cp932", "iso-8859-1": "cp1252", "iso-8859-9": "cp1254",
          "maccyrillic": "windows-1251"}
ASCII = bytes(range(32, 127)) + b"\t\n\r"


def candidates(data: bytes):
    import chardet
    sample, size = [], 0
    for line in data.split(b"\n"):
        if not line.isascii():
            sample.append(line[:MOST_LOOKED_AT])
            size += len(line)
        if size > MOST_LOOKED_AT:
            break
    found = chardet.detect(b"\n".join(sample)[:MOST_LOOKED_AT])
    if found["encoding"] and found["confidence"] >= LEAST_SURE:
        name = found["encoding"].lower()
        yield RATHER.get(name, name)
        yield name
    yield "cp1252"  # as browsers do with text that does not say what it is


def text_of(data: bytes, name: str):
    try:
        text = data.decode(name)
        return text if text.encode(name) == data and ASCII.decode(name) == ASCII.decode() else None
    except (UnicodeError, LookupError):
        return None


def decoded(data: bytes, known) -> tuple:
    for names in (known, candidates(data)):
        for name in names:
            text = text_of(data, name)
            if text is not None:
                return name, text.encode()
    return "", b""


def encoded(text: str, name: str) -> tuple:
    try:
        return "ok", text.encode(name)
    except UnicodeEncodeError as e:
        return "no", text[e.start].encode()


if __name__ == "__main__":
    what, names = sys.argv[1], sys.argv[2:]
    data = sys.stdin.buffer.read()
    said, body = decoded(data, names) if what == "decode" else encoded(data.decode(), names[0])
    sys.stdout.buffer.write(said.encode() + b"\n" + body + b".")
