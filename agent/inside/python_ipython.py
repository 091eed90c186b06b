# IPython's syntax (!ls, %cd, %%bash, name?), for code that is not Python without it, such as notebooks. IPython's
# own transformer turns it into Python, which runs like any other here. A text among what the programs share (IPYTHON), compiled when it is
# needed: it may hold no three single quotes.

MARKED = r"""(?mx) ^[ \t]* (?: [%!?,;/] | >>> | In\ \[ )   # a magic, a command of the shell, a question, a pasted prompt
                | = [ \t]* [%!] \S | \? [ \t]* $ | \A [ \t]"""


def ipython_shell(display):
    from IPython.core.interactiveshell import InteractiveShell
    if InteractiveShell.initialized():
        return InteractiveShell.instance()
    from IPython.core.displaypub import DisplayPublisher
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data, *_, **__):
            display.add("display_data", {kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value
                                         for kind, value in data.items() if isinstance(value, (bytes, str))})

        def clear_output(self, *_, **__):
            pass  # what was printed is the caller's already

    class Shell(InteractiveShell):
        def enable_gui(self, gui=None):
            pass  # there is no screen

        def system(self, command):
            """Keeps the order of printed text: both go to the same pipes. IPython's own function would need a terminal."""
            import subprocess
            flush()
            done = subprocess.run(self.var_expand(command, depth=1), shell=True, executable=os.environ.get("SHELL"))
            self.user_ns["_exit_code"] = done.returncode

        def _showtraceback(self, kind, error, lines):
            print(self.InteractiveTB.stb2text(lines), file=sys.stderr)

    def print_page(_, text, start=0, **__):
        text = text["text/plain"] if isinstance(text, dict) else text
        print("\n".join(text.splitlines()[start:]))

    main = sys.modules["__main__"]
    shell = Shell.instance(user_module=main, display_pub_class=Publisher, config=Config(
        {"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}}))
    shell.set_hook("show_in_pager", print_page, 1)
    for name in "exit", "quit":
        main.__dict__.pop(name, None)  # Python's own: they end this program with their code
    import warnings
    warnings.filterwarnings("ignore", message=".*dhist requires you to install")  # %cd: that this is kept nowhere else
    return shell


def start_ipython(display):
    """Makes get_ipython() work. Without IPython the name stays undefined, and its use says so."""
    try:
        ipython_shell(display)
    except ImportError:
        pass


def python_of(source, display):
    """The Python for a text in IPython's syntax; the text itself if IPython changes nothing."""
    import re
    alone = len(source.strip().splitlines()) == 1  # then `pip install x` is a magic, too
    marked = re.search(MARKED, source)
    if not (alone or marked):
        return source
    try:
        shell = ipython_shell(display)
    except ImportError:
        if not marked:
            return source
        line = source.splitlines()[source.count("\n", 0, marked.end())].strip()
        raise ModuleNotFoundError("%s is IPython's syntax, and this Python (%s) has no IPython: pip install ipython, or do it with subprocess"
                                  % (clip(line[:200]), sys.executable), name="IPython") from None
    made = shell.transform_cell(source)
    if alone:
        with shell.builtin_trap:
            made = shell.prefilter_manager.prefilter_lines(made)
    return made
