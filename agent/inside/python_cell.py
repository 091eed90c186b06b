# Shared by the Python programs inside a session. They arrive through stdin, so the session has no file of them.
#
# A job comes through stdin: a line with a length, and JSON of that many bytes; the rest is the program's own input. A report
# goes back in the stream of stderr, after a nonce that is new for each job: RS nonce SP length LF, and JSON of that many bytes.
import ast, atexit, base64, builtins, io, inspect, json, linecache, os, signal, site, sys, traceback, types

OWN = ("<caisson>", "<string>")
MOST_TEXT = 65536        # of a traceback, in characters
MOST_SHOWN = 4194304     # of everything that is displayed, as JSON


def read_exactly(fd, size):
    parts = []
    while size > 0:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            os._exit(0)  # nobody wants this interpreter any more
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_job(fd):
    head = b""
    while not head.endswith(b"\n"):
        head += read_exactly(fd, 1)
    return json.loads(read_exactly(fd, int(head)))


def write_all(fd, data):
    try:
        while data:
            data = data[os.write(fd, data):]
    except OSError:
        pass  # closed by the program itself


def report(fd, job, value):
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    write_all(fd, b"\x1e%s %d\n" % (job["nonce"].encode(), len(text)) + text)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def enter(job):
    """Sets the job's working directory and writes its files. Returns an error, or None."""
    try:
        if job.get("make"):
            os.makedirs(job["cwd"], exist_ok=True)
        if job.get("cwd"):
            os.chdir(job["cwd"])
    except OSError as e:
        return "cwd %s: %s" % (job["cwd"], e.strerror)
    for name, data in (job.get("files") or {}).items():
        try:
            if os.path.dirname(name):
                os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "wb") as file:
                file.write(base64.b64decode(data))
        except (OSError, ValueError) as e:
            return "file %s: %s" % (name, getattr(e, "strerror", None) or e)
    return None


def find_packages():
    """Adds the user's site directory, which may be newer than this interpreter."""
    place = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    if place and place not in sys.path and os.path.isdir(place):
        site.addsitedir(place)


def clip(text):
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT // 2] + "\n...\n" + text[-MOST_TEXT // 2:]


def without_own_frames(error):
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename in OWN:
        place = place.tb_next
    return error.with_traceback(place)


def describe(error):
    """An error in the form of notebooks. An exception's own methods may raise."""
    out = {"ename": type(error).__name__, "evalue": "", "traceback": []}
    try:
        out["evalue"] = clip(str(error))
        out["traceback"] = clip("".join(traceback.format_exception(without_own_frames(error)))).splitlines()
    except BaseException:
        pass
    return out


class Display:
    """A cell's displays and results, in order."""

    def __init__(self):
        self.items, self.bytes = [], 0

    def add(self, kind, data, **more):
        self.bytes += sum(len(text) for text in data.values())
        if self.bytes <= MOST_SHOWN:
            self.items.append({"output_type": kind, "data": data, "metadata": {}, **more})

    def data_of(self, value):
        data = {"text/plain": repr(value)}
        for method, kind in (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_svg_", "image/svg+xml"),
                             ("_repr_latex_", "text/latex"), ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg")):
            if isinstance(value, type) or not hasattr(type(value), method):
                continue
            try:
                made = getattr(value, method)()
            except Exception:
                continue
            if isinstance(made, bytes):
                made = base64.b64encode(made).decode()
            if isinstance(made, str):
                data[kind] = made
        return data

    def show(self, *values, **_):
        for value in values:
            self.add("display_data", self.data_of(value))

    def figures(self):
        """Open figures of matplotlib, as its inline backend shows them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot is not None else ():
            file = io.BytesIO()
            pyplot.figure(number).savefig(file, format="png", bbox_inches="tight")
            self.add("display_data", {"text/plain": "<Figure>", "image/png": base64.b64encode(file.getvalue()).decode()})
        if pyplot is not None:
            pyplot.close("all")


def evaluate(code, space):
    value = eval(code, space)
    if code.co_flags & inspect.CO_COROUTINE:  # await at the top level
        import asyncio
        value = asyncio.run(value)
    return value


def names_command(tree, space):
    """`ls -a` and `pwd` are valid Python, too, but would fail because their names are undefined."""
    first = tree.body[0].value if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) else None
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Sub):
        first = first.left
    return isinstance(first, ast.Name) and first.id not in space and not hasattr(builtins, first.id)


def with_ipython():
    if "python_of" not in globals():
        exec(compile(IPYTHON, OWN[0], "exec"), globals())


def tree_of(source, name, flags, space, display):
    """The parsed source. Text that does not parse may be IPython's syntax; plain code pays nothing for that."""
    tree = error = None
    try:
        tree = compile(source, name, "exec", flags, dont_inherit=True)
        if "get_ipython" in source:
            with_ipython()
            start_ipython(display)
        if not names_command(tree, space):
            return tree
    except SyntaxError as e:
        error = e
    with_ipython()
    made = python_of(source, display)
    if made != source:
        return compile(made, name, "exec", flags, dont_inherit=True)
    if error is not None:
        raise error
    return tree


def run_cell(source, name, space, display, count):
    """Runs a cell; its last expression is a result, unless a semicolon hides it. Raises what the cell raises."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = tree_of(source, name, flags | ast.PyCF_ONLY_AST, space, display)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    if tree.body:
        evaluate(compile(tree, name, "exec", flags, dont_inherit=True), space)
    if last is not None:
        value = evaluate(compile(last, name, "eval", flags, dont_inherit=True), space)
        if value is not None and not source.rstrip().endswith(";"):
            display.add("execute_result", display.data_of(value), execution_count=count)
    display.figures()


def exit_code_of(error):
    if not isinstance(error, SystemExit):
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    if error.code is None:
        return 0
    return error.code & 255 if isinstance(error.code, int) else 1


def new_main(display):
    space = types.ModuleType("__main__")
    space.__builtins__ = builtins
    sys.modules["__main__"] = space
    builtins.display = display.show
    os.environ.setdefault("MPLBACKEND", "Agg")
    import warnings
    warnings.filterwarnings("ignore", message=".*is non-interactive, and thus cannot be shown")
    return space.__dict__
