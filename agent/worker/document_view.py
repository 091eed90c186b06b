"""The text of a PDF, XLSX or PPTX for str_replace_editor's view. Run by caisson-file-worker inside the session, for one file, which is
its standard input: python3 -I document_view.py pdf|xlsx|pptx '{"page_range": [1, 5], ...}'. Prints one JSON object:
{"text", "metadata"} or {"error"}."""
import io
import json
import re
import sys
import zipfile
from xml.etree import ElementTree

MOST_CHARACTERS = 200_000  # of text; more is never shown
MOST_BYTES = 64 << 20      # of the file, and of one part of a package when it is unpacked
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


class Refused(Exception):
    """A failure whose words the client gets."""


def chosen(asked, name: str, total: int) -> range:
    """The numbers from 1 that a range of the request names."""
    if asked is None:
        return range(1, total + 1)
    if len(asked) != 2 or not 1 <= asked[0] <= asked[1]:
        raise Refused(f"Invalid `{name}` parameter: {asked}. It should be a list of two integers, the first at least 1 and not larger "
                      "than the second.")
    if asked[0] > total:
        raise Refused(f"Invalid `{name}` parameter: {asked}. There are {total}.")
    return range(asked[0], min(asked[1], total) + 1)


def joined(parts) -> str:
    """At most as many parts as are shown."""
    out, size = [], 0
    for part in parts:
        out.append(part)
        size += len(part)
        if size > MOST_CHARACTERS:
            break
    return "\n".join(out)


def pdf(file, asked):
    import pypdf
    reader = pypdf.PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise Refused("The PDF is encrypted and needs a password.")
    total = len(reader.pages)
    pages = chosen(asked.get("page_range"), "page_range", total)
    text = joined(f"## Page {n}\n\n{reader.pages[n - 1].extract_text()}\n" for n in pages)
    return text, {"type": "pdf", "total_pages": total, "pages": [pages.start, pages.stop - 1]}


def cell(value) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def sheet_lines(sheet, rows_asked):
    yield f"## Sheet: {sheet.title}\n"
    first, last = (rows_asked or [1, None])[:2]
    for number, row in enumerate(sheet.iter_rows(min_row=first, max_row=last, values_only=True)):
        yield "| " + " | ".join(map(cell, row)) + " |"
        if number == 0:
            yield "|" + " --- |" * len(row)
    yield ""


def xlsx(file, asked):
    import openpyxl
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    wanted = asked.get("sheet_name")
    if wanted is not None and wanted not in book.sheetnames:
        raise Refused(f"Invalid `sheet_name` parameter: {wanted}. The sheets are: {', '.join(book.sheetnames)}.")
    rows = asked.get("row_range")
    if rows is not None:
        chosen(rows, "row_range", 1 << 20)
    sheets = [book[name] for name in (book.sheetnames if wanted is None else [wanted]) if hasattr(book[name], "iter_rows")]
    text = joined(line for sheet in sheets for line in sheet_lines(sheet, rows))
    facts = [{"name": s.title, "rows": s.max_row, "columns": s.max_column} for s in sheets]
    return text, {"type": "xlsx", "total_sheets": len(book.sheetnames), "sheet_names": book.sheetnames, "sheets": facts}


def part(package: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if package.getinfo(name).file_size > MOST_BYTES:
        raise Refused("The document is too large when it is unpacked.")
    return ElementTree.fromstring(package.read(name))


def paragraphs(slide: ElementTree.Element):
    for paragraph in slide.iter(f"{DRAWING}p"):
        text = "".join(run.text or "" for run in paragraph.iter(f"{DRAWING}t"))
        if text.strip():
            yield text


def slide_names(package: zipfile.ZipFile) -> list[str]:
    """Sorts them in the order of display."""
    relations = {r.get("Id"): r.get("Target") for r in part(package, "ppt/_rels/presentation.xml.rels")}
    listed = [node for node in part(package, "ppt/presentation.xml").iter() if node.tag.endswith("}sldId")]
    targets = [relations.get(value) for node in listed for key, value in node.attrib.items() if key.endswith("}id")]
    return [target.lstrip("/") if target.startswith("/") else "ppt/" + target for target in targets if target]


def pptx(file, asked):
    package = zipfile.ZipFile(file)
    names = slide_names(package)
    slides = chosen(asked.get("slide_range"), "slide_range", len(names))
    text = joined(f"## Slide {n}\n\n" + "\n".join(paragraphs(part(package, names[n - 1]))) + "\n" for n in slides)
    return text, {"type": "pptx", "total_slides": len(names), "slides": [slides.start, slides.stop - 1]}


def main() -> dict:
    kind, asked = sys.argv[1], json.loads(sys.argv[2])
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        return {"error": f"File is too large. Maximum allowed size is {MOST_BYTES >> 20}MB."}
    try:
        text, metadata = {"pdf": pdf, "xlsx": xlsx, "pptx": pptx}[kind](io.BytesIO(content), asked)
    except Refused as why:
        return {"error": str(why)}
    except ImportError as why:
        return {"error": f"{kind} files cannot be viewed here: {why}"}
    except Exception as why:  # whatever a broken document does to a parser, the client is told and nothing else happens
        return {"error": f"The {kind} file cannot be read: {type(why).__name__}: {re.sub(r'[^ -~]', '?', str(why))[:200]}"}
    return {"text": text[:MOST_CHARACTERS], "metadata": metadata}


print(json.dumps(main()))
