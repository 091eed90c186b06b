"""/v1/file/str_replace_editor: its sentences are what clients match on (trap 11)."""
import pytest


@pytest.fixture
def file(api):
    name = api.bash("mktemp -p ~ edit-XXXXXX")["stdout"].strip()
    api.bash(f"printf 'one\\ntwo\\nthree\\ntwo\\nfive\\n' > {name}")
    yield name
    api.bash(f"rm -f {name}")


def edit(api, path, command, **fields):
    return api.data("/v1/file/str_replace_editor", {"command": command, "path": path, **fields})


def refused(api, path, command, **fields):
    answer = api.fails("/v1/file/str_replace_editor", {"command": command, "path": path, **fields})
    assert answer["message"] == answer["data"]["message"] and not {"output", "error", "prev_exist"} & set(answer["data"])
    return answer["message"]


def content(api, path):
    return api.data("/v1/file/read", {"file": path})["content"]


def test_trap_11_view_numbers_lines_as_cat_does(api, file):
    got = edit(api, file, "view")
    assert got["output"].startswith(f"Here's the result of running `cat -n` on {file}:\n     1\tone\n     2\ttwo\n")
    assert (got["path"], got["prev_exist"]) == (file, True)


def test_trap_10_view_range_counts_from_1_and_includes_its_end(api, file):
    assert edit(api, file, "view", view_range=[2, 3])["output"].endswith(":\n     2\ttwo\n     3\tthree\n")
    assert "     5\tfive\n" in edit(api, file, "view", view_range=[4, -1])["output"]


@pytest.mark.parametrize("given, said", [
    ([1], "It should be a list of two integers."),
    ([0, 2], "Its first element `0` should be within the range of lines of the file: [1, 5]."),
    ([4, 2], "Its second element `2` should be greater than or equal to the first element `4`."),
])
def test_trap_11_a_wrong_view_range_is_explained(api, file, given, said):
    message = refused(api, file, "view", view_range=given)
    assert message == f"Invalid `view_range` parameter: {str(given) if len(given) > 1 else '[1]'}. {said}"


def test_a_view_range_beyond_the_end_shows_what_there_is_and_says_so(api, file):
    output = edit(api, file, "view", view_range=[4, 99])["output"]
    assert output == ("NOTE: We only show up to 5 since there're only 5 lines in this file.\n"
                      f"Here's the result of running `cat -n` on {file}:\n     4\ttwo\n     5\tfive\n")
    assert "should be within the range of lines of the file: [1, 5]." in refused(api, file, "view", view_range=[9, 99])


def test_lines_of_a_file_from_windows_are_found_and_keep_their_ends(api, file):
    api.bash(f"printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > {file}")
    edit(api, file, "str_replace", old_str="one\ntwo", new_str="1\n2\n2b")
    assert content(api, file) == "1\r\n2\r\n2b\r\nthree\r\n"


def test_trap_8_a_long_file_is_clipped_at_16000_characters(api, file):
    api.bash(f"head -c 20000 /dev/zero | tr '\\0' 'é' > {file} ; python3 -c \"print('é' * 20000)\" > {file}")
    output = edit(api, file, "view")["output"]
    assert "é" * 16000 + "<response clipped><NOTE>" in output and "é" * 16001 not in output


def test_trap_11_a_directory_shows_two_levels_without_hidden_ones(api):
    api.bash("mkdir -p ~/edir/a/b/c ~/edir/.h; touch ~/edir/x ~/edir/a.txt ~/edir/a/y ~/edir/a/b/z; ln -s a ~/edir/link")
    output = edit(api, "/home/gem/edir", "view")["output"]
    assert output == (
        "Here's the files and directories up to 2 levels deep in /home/gem/edir, excluding hidden items:\n"
        "/home/gem/edir/\n/home/gem/edir/a/\n/home/gem/edir/a.txt\n/home/gem/edir/a/b/\n/home/gem/edir/a/y\n/home/gem/edir/link/\n"
        "/home/gem/edir/x\n\n1 hidden files/directories in this directory are excluded. You can use 'ls -la /home/gem/edir' to see them.")
    assert edit(api, "/home/gem/edir/a/b", "view")["output"].endswith(":\n/home/gem/edir/a/b/\n/home/gem/edir/a/b/c/\n/home/gem/edir/a/b/z")
    assert "is not allowed when `path` points to a directory" in refused(api, "/home/gem/edir", "view", view_range=[1, 2])
    assert "only the `view` command can be used on directories." in refused(api, "/home/gem/edir", "str_replace", old_str="a", new_str="b")
    api.bash("rm -rf ~/edir")


def test_trap_11_create_makes_a_file_and_never_replaces_one(api, file):
    fresh = file + "-new"
    got = edit(api, fresh, "create", file_text="text\n")
    assert got["output"] == f"File created successfully at: {fresh}" and got["prev_exist"] is False and got["new_content"] == "text\n"
    assert refused(api, fresh, "create", file_text="other") == (
        f"Invalid `path` parameter: {fresh}. File already exists at: {fresh}. Cannot overwrite files using command `create`.")
    assert refused(api, fresh + "x", "create") == "Parameter `file_text` is required for command: create."
    # The creation is an edit: undoing it writes the same text again, and the file stays.
    assert edit(api, fresh, "undo_edit")["output"].startswith(f"Last edit to {fresh} undone successfully.")
    assert content(api, fresh) == "text\n"
    api.bash(f"rm {fresh}")


def test_trap_11_str_replace_replaces_one_place(api, file):
    got = edit(api, file, "str_replace", old_str="three", new_str="THREE\n3")
    assert got["output"].startswith(f"The file {file} has been edited. Here's the result of running `cat -n` on a snippet of {file}:\n")
    assert got["output"].endswith("Review the changes and make sure they are as expected. Edit the file again if necessary.")
    assert "     3\tTHREE\n     4\t3\n" in got["output"]
    assert (got["old_content"], got["new_content"]) == ("one\ntwo\nthree\ntwo\nfive\n", "one\ntwo\nTHREE\n3\ntwo\nfive\n")
    assert content(api, file) == got["new_content"]


def test_trap_11_what_cannot_be_replaced_is_explained(api, file):
    assert refused(api, file, "str_replace", old_str="six", new_str="6") == (
        f"No replacement was performed, old_str `six` did not appear verbatim in {file}.")
    assert refused(api, file, "str_replace", old_str="two", new_str="2") == (
        "No replacement was performed. Multiple occurrences of old_str `two` in lines [2, 4]. Please ensure it is unique.")
    assert "`new_str` and `old_str` must be different." in refused(api, file, "str_replace", old_str="one", new_str="one")
    assert refused(api, file, "str_replace", new_str="x") == "Parameter `old_str` is required for command: str_replace."
    missing = refused(api, "/tmp/missing", "str_replace", old_str="a", new_str="b")
    assert missing == "Invalid `path` parameter: /tmp/missing. The path /tmp/missing does not exist. Please provide a valid path."


def test_an_empty_old_str_is_everywhere(api, file):
    assert refused(api, file, "str_replace", old_str="", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3, 4, 5, 6]. Please ensure it is unique.")
    assert "Multiple occurrences of old_str ``" in refused(api, file, "str_replace", old_str="", new_str="x", replace_mode="ALL")
    api.bash(f": > {file}")
    assert edit(api, file, "str_replace", old_str="", new_str="x")["new_content"] == content(api, file) == "x"


def test_many_places_are_named_in_linear_time(api, file):
    api.bash(f"yes {'x' * 90} | head -n 99000 > {file}")
    assert refused(api, file, "str_replace", old_str="x" * 90, new_str="y").endswith(", 98999, 99000]. Please ensure it is unique.")


def test_trap_11_blanks_around_the_text_are_forgiven(api, file):
    edit(api, file, "str_replace", old_str="\n  three  \n", new_str=" drei ")
    assert content(api, file) == "one\ntwo\ndrei\ntwo\nfive\n"


@pytest.mark.parametrize("mode, wanted", [("ALL", "one\n2\nthree\n2\nfive\n"), ("FIRST", "one\n2\nthree\ntwo\nfive\n"),
                                          ("LAST", "one\ntwo\nthree\n2\nfive\n")])
def test_trap_11_replace_mode_chooses_the_places(api, file, mode, wanted):
    assert edit(api, file, "str_replace", old_str="two", new_str="2", replace_mode=mode)["new_content"] == wanted


@pytest.mark.parametrize("line, wanted", [(0, "new\none\ntwo\nthree\ntwo\nfive\n"), (2, "one\ntwo\nnew\nthree\ntwo\nfive\n"),
                                          (5, "one\ntwo\nthree\ntwo\nfive\nnew\n")])
def test_trap_11_insert_goes_behind_a_line(api, file, line, wanted):
    got = edit(api, file, "insert", insert_line=line, new_str="new")
    assert got["new_content"] == content(api, file) == wanted
    assert "on a snippet of the edited file:\n" in got["output"]
    assert got["output"].endswith("(correct indentation, no duplicate lines, etc). Edit the file again if necessary.")


def test_trap_11_insert_beyond_the_file_is_explained(api, file):
    assert refused(api, file, "insert", insert_line=9, new_str="x") == (
        "Invalid `insert_line` parameter: 9. It should be within the range of allowed values: [0, 5]")
    assert refused(api, file, "insert", new_str="x") == "Parameter `insert_line` is required for command: insert."


def test_trap_11_the_last_ten_edits_can_be_undone(api, file):
    for n in range(12):
        edit(api, file, "insert", insert_line=0, new_str=str(n))
    for _ in range(10):
        edit(api, file, "undo_edit")
    assert content(api, file).startswith("1\n0\none\n")
    # Behind it, where a file worker before this one has ended: that edits before it are forgotten (test_outlive.py).
    assert refused(api, file, "undo_edit").startswith(f"No edit history found for {file}.")


def test_binary_and_huge_files_are_refused(api, file):
    api.bash(f"head -c 100 /dev/zero > {file}")
    assert "appears to be binary" in refused(api, file, "view")
    api.bash(f"head -c 11000000 /dev/zero | tr '\\0' x > {file}")
    assert refused(api, file, "view") == "File is too large (10MB). Maximum allowed size is 10MB."


# --- documents ---

def one_page_pdf(text: str) -> bytes:
    """A PDF of one page for each line of the text, by hand."""
    pages = text.split("\n")
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{4 + 2 * i} 0 R' for i in range(len(pages)))}] >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i, page in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
                       "/Resources << /Font << /F1 3 0 R >> >> >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    return out + (f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
                  f"startxref\n{len(out)}\n%%EOF\n").encode()


def put(api, name: str, content: bytes) -> str:
    answer = api.http.post("/v1/file/upload", files=[("path", (None, f"/home/gem/{name}")), ("file", (name, content))]).json()
    return answer["data"]["file_path"]


def test_a_pdf_is_shown_by_pages(api):
    pytest.importorskip("pypdf", reason="python3-pypdf is not installed on this host")
    path = put(api, "doc.pdf", one_page_pdf("First page\nSecond page\nThird page"))
    whole = edit(api, path, "view", enable_metadata=True)
    assert whole["output"].startswith(f"Here's the content of the file {path} displayed in Markdown format:\n## Page 1\n\nFirst page")
    assert whole["metadata"]["total_pages"] == 3
    part = edit(api, path, "view", page_range=[2, 3])
    assert "First" not in part["output"] and "Third page" in part["output"] and part["metadata"] is None
    assert "There are 3." in refused(api, path, "view", page_range=[4, 5])
    api.bash(f"rm {path}")


def test_an_xlsx_is_shown_by_sheets_and_rows(api):
    openpyxl = pytest.importorskip("openpyxl", reason="python3-openpyxl is not installed on this host")
    import io
    book = openpyxl.Workbook()
    book.active.title = "Numbers"
    for n in range(1, 6):
        book.active.append([n, n * n, "a|b"])
    book.create_sheet("Other").append(["only"])
    file = io.BytesIO()
    book.save(file)
    path = put(api, "doc.xlsx", file.getvalue())
    whole = edit(api, path, "view", enable_metadata=True)
    assert "## Sheet: Numbers\n\n| 1 | 1 | a\\|b |\n| --- | --- | --- |\n" in whole["output"] and "| only |" in whole["output"]
    assert whole["metadata"]["sheet_names"] == ["Numbers", "Other"]
    part = edit(api, path, "view", sheet_name="Numbers", row_range=[4, 5])["output"]
    assert "| 4 | 16 |" in part and "| 3 |" not in part and "only" not in part
    assert "The sheets are: Numbers, Other." in refused(api, path, "view", sheet_name="None")
    api.bash(f"rm {path}")


def test_a_pptx_is_shown_by_slides(api):
    import io
    import zipfile
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("ppt/presentation.xml", f'<p xmlns:r="{relation}"><l xmlns="x"><sldId r:id="r2"/><sldId r:id="r1"/></l></p>')
        package.writestr("ppt/_rels/presentation.xml.rels",
                         '<x><r Id="r1" Target="slides/slide1.xml"/><r Id="r2" Target="slides/slide2.xml"/></x>')
        for n, text in ((1, "shown last"), (2, "shown first")):
            package.writestr(f"ppt/slides/slide{n}.xml", f'<s xmlns:a="{drawing}"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></s>')
    path = put(api, "doc.pptx", file.getvalue())
    whole = edit(api, path, "view", enable_metadata=True)
    assert "## Slide 1\n\nshown first\n" in whole["output"] and "## Slide 2\n\nshown last\n" in whole["output"]
    assert whole["metadata"]["total_slides"] == 2
    assert "shown last" not in edit(api, path, "view", slide_range=[1, 1])["output"]
    api.bash(f"rm {path}")


def test_a_broken_document_is_a_failure_that_is_told(api):
    path = put(api, "broken.pdf", b"%PDF-1.7 nonsense")
    assert refused(api, path, "view")
    path = put(api, "broken.pptx", b"PK nonsense")
    assert "cannot be read" in refused(api, path, "view")
    api.bash("rm ~/broken.pdf ~/broken.pptx")
