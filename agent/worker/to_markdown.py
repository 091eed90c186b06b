"""A document as Markdown, by Microsoft's markitdown. The agent runs it in a private session of the domain `document`, which has no network, for
one document: python3 -I to_markdown.py. Its input is a line of JSON, {"name", "media_type", "data_uri"}, and behind it the bytes. It prints
one JSON object: {"done": {"markdown"}} or {"refused": text}. Documents are hostile: packages are looked through before a converter unpacks them,
and what a converter still does wrong ends with its session. markitdown gets bytes only: no URL, no plugin, no model."""
import base64
import binascii
import io
import json
import os
import re
import sys
import urllib.parse
import warnings
import zipfile

MOST_BYTES = 32 << 20
MOST_MARKDOWN = 8 << 20
MOST_DIRECTORY = 4 << 20  # of a package: what is read before its parts can be counted
MOST_PARTS = 10_000       # of a package, with those of packages in it
MOST_UNPACKED = 256 << 20
MOST_PART = 128 << 20
MOST_PACKAGES_DEEP = 3
LIBRARIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "markitdown")
MACROS = {".docm": ".docx", ".dotm": ".docx", ".pptm": ".pptx", ".ppsm": ".pptx", ".xlsm": ".xlsx", ".xltm": ".xlsx"}
XML = re.compile(r"\.(xml|rels|vml|opf|ncx|xhtml)$", re.I)


class Refused(Exception):
    """A failure whose words the client gets."""


class Packages:
    """Looks through a zip package, and packages in it, without unpacking to disk."""

    def __init__(self):
        self.parts = self.bytes = 0

    def check(self, data: bytes, deep=1):
        if deep > MOST_PACKAGES_DEEP:
            raise Refused(f"archives lie in each other more than {MOST_PACKAGES_DEEP} deep")
        at = data.rfind(b"PK\5\6", max(0, len(data) - 65557))
        if at < 0 or int.from_bytes(data[at + 12:at + 16], "little") > MOST_DIRECTORY:
            raise Refused("the archive is damaged, or has too many parts" if at < 0 else f"the archive has more than {MOST_PARTS} parts")
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
            parts = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as why:
            raise Refused(f"the archive cannot be read: {why}") from None
        self.parts += len(parts)
        if self.parts > MOST_PARTS:
            raise Refused(f"the archive has more than {MOST_PARTS} parts")
        office = "[Content_Types].xml" in archive.NameToInfo
        # zipfile unpacks no more than a part says, so what all of them say is what a converter can be made to unpack.
        for part in parts:
            self.bytes += part.file_size
            if part.file_size > MOST_PART or self.bytes > MOST_UNPACKED:
                raise Refused(f"the archive would be larger than {MOST_UNPACKED >> 20} MiB when unpacked (one part: {MOST_PART >> 20} MiB)")
            if part.flag_bits & 1:
                raise Refused("the document is encrypted and needs a password")
        for part in parts:
            try:
                with archive.open(part) as file:
                    if XML.search(part.filename):
                        self.check_xml(file.read(), part.filename, office)
                    elif file.peek(4)[:4] == b"PK\3\4":
                        self.check(file.read(), deep + 1)
            except (zipfile.BadZipFile, zipfile.zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError) as why:
                raise Refused(f"the part {part.filename!r:.100} cannot be unpacked: {why}") from None

    @staticmethod
    def check_xml(data: bytes, name: str, office: bool):
        """Entities can name files and addresses, and grow without bound. No document needs them, and an Office part has no DTD at all."""
        text = data.replace(b"\0", b"")  # so that UTF-16 hides nothing
        if b"<!ENTITY" in text or (office and b"<!DOCTYPE" in text):
            raise Refused(f"the part {name!r:.100} declares XML entities, or a document type; such a document is not converted")


def of_data_uri(uri: str):
    """RFC 2397: media type and bytes."""
    head, comma, data = uri[len("data:"):].partition(",")
    if not comma:
        raise Refused("a data: URI has a comma before its data")
    media, *parameters = head.split(";")
    raw = urllib.parse.unquote_to_bytes(data)
    if parameters and parameters[-1].strip().lower() == "base64":
        try:
            raw = base64.b64decode(re.sub(rb"\s", b"", raw), validate=True)
        except binascii.Error as why:
            raise Refused(f"the data: URI is not base64: {why}") from None
        parameters.pop()
    return ";".join([media or "text/plain", *parameters]), raw


def convert(job: dict, data: bytes) -> str:
    media_type = job.get("media_type") or ""
    if job.get("data_uri"):
        media_type, data = of_data_uri(job["data_uri"])
    if len(data) > MOST_BYTES:
        raise Refused(f"the document is larger than {MOST_BYTES >> 20} MiB")
    if data[:4] in (b"PK\3\4", b"PK\5\6"):
        Packages().check(data)
    if not os.path.isdir(LIBRARIES):
        raise Refused("markitdown is not installed here: the image has it unless it was built with MARKITDOWN=0; scripts/run --native and "
                      "scripts/test install it from image/markitdown/requirements.txt")
    sys.path.insert(0, LIBRARIES)
    warnings.simplefilter("ignore")
    import markitdown
    media, _, rest = media_type.partition(";")
    charset = re.search(r"charset=\"?([A-Za-z0-9._:-]+)", rest, re.I)
    ending = os.path.splitext(job.get("name") or "")[1].lower()
    info = markitdown.StreamInfo(mimetype=media.strip().lower() or None, extension=MACROS.get(ending, ending) or None,
                                 charset=charset.group(1) if charset else None)
    try:
        return markitdown.MarkItDown(enable_plugins=False).convert_stream(io.BytesIO(data), stream_info=info).markdown
    except markitdown.UnsupportedFormatException:
        raise Refused(f"markitdown knows no way to convert this ({media or ending or 'its type is unknown'})") from None
    except markitdown.MarkItDownException as why:
        raise Refused(f"markitdown cannot convert the document: {str(why)[:500]}") from None
    except RecursionError:
        raise Refused("the document is nested too deeply") from None
    except MemoryError:
        raise Refused("the document needs more memory than its session has") from None


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not the answer
    job = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    try:
        text = convert(job, data).encode(errors="replace")
        if len(text) > MOST_MARKDOWN:
            raise Refused(f"the Markdown is longer than {MOST_MARKDOWN >> 20} MiB")
        answer = {"done": {"markdown": text.decode()}}
    except Refused as why:
        answer = {"refused": str(why)}
    except Exception as why:  # of a converter: whatever a document provokes there
        answer = {"refused": f"the document cannot be converted: {type(why).__name__}: {str(why)[:300]}"}
    out.write(json.dumps(answer, ensure_ascii=False))
    out.flush()
    os._exit(0)


main()
