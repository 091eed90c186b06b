"""Documents for test_markdown.py, small and large, honest and hostile. As a program, with the folder of markitdown's libraries: writes those
that need them into a folder, or prints what markitdown itself makes of a file."""
import io
import json
import sys
import zipfile

CONTENT_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
RELS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"""
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
OPF = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata
xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">b</dc:identifier><dc:title>A book</dc:title><dc:language>en</dc:language></metadata>
<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>"""


def package(parts: dict, method=zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def docx(text="Hello from Word", prolog="", **more) -> bytes:
    body = f'<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>'
    document = f'<?xml version="1.0"?>{prolog}<w:document xmlns:w="{WORD}">{body}</w:document>'
    return package({"[Content_Types].xml": CONTENT_TYPES, "_rels/.rels": RELS, "word/document.xml": document, **more})


def epub(prolog="<!DOCTYPE html>") -> bytes:
    page = f'<?xml version="1.0"?>{prolog}<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>Chapter</h1><p>Read me</p></body></html>'
    return package({"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "book.opf": OPF, "c.xhtml": page})


def pdf(text="Hello from PDF") -> bytes:
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
               "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
               f"<</Length {len(stream)}>>stream\n{stream}\nendstream", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    out, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF"
    return (out + end).encode()


def plain_samples() -> dict:
    return {"word.docx": docx(), "macros.docm": docx("With macros", **{"word/vbaProject.bin": b"\xd0\xcf\x11\xe0 Shell(\"id\")"}),
            "book.epub": epub(), "page.pdf": pdf(), "page.html": b"<html><body><h1>Title</h1><p>A <b>bold</b> word</p></body></html>",
            "table.csv": b"name,count\nx,1\n", "data.json": b'{"a": 1}', "notes.txt": "Grüße\n".encode(),
            "files.zip": package({"inner.csv": b"p,q\n3,4\n", "deep/page.html": b"<h2>Inner</h2>"})}


def library_samples(folder: str):
    """Those that are made with markitdown's own libraries."""
    import openpyxl
    import pptx
    from PIL import Image
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = "Hello from slides"
    slides.save(f"{folder}/slides.pptx")
    book = openpyxl.Workbook()
    book.active.append(["word", "number"])
    book.active.append(["x", 7])
    book.save(f"{folder}/sheet.xlsx")
    picture = Image.new("RGB", (40, 30))
    exif = picture.getexif()
    exif[0x010E], exif[0x013B] = "A described picture", "An artist"
    picture.save(f"{folder}/picture.jpg", exif=exif)


def main(libraries: str, what: str, path: str):
    sys.path.insert(0, libraries)
    if what == "samples":
        return library_samples(path)
    import markitdown
    print(json.dumps(markitdown.MarkItDown(enable_plugins=False).convert(path).markdown))


if __name__ == "__main__":
    main(*sys.argv[1:])
