# Runs one job, then ends. The interpreter was started ahead and is used once.


def leave(code, job=None, said=None):
    """Ends like the interpreter itself, but without the time of its teardown. The report is its last act."""
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    flush()
    if said is not None:
        report(2, job, {**said, "exit_code": code})
    os._exit(code)


def bound_memory(most):
    """Does what `bound_memory` of agent/worker/starter.cc does for other programs."""
    import resource
    for what, soft in (resource.RLIMIT_AS, most), (resource.RLIMIT_DATA, most), (resource.RLIMIT_STACK, None):
        hard = resource.getrlimit(what)[1]
        lower = soft is not None and (hard == resource.RLIM_INFINITY or soft < hard)
        resource.setrlimit(what, (soft if lower else hard, hard))


def run_script(job):
    """Runs a file as `python3 file` does."""
    path = job["script"]
    with open(path, "rb") as file:
        source = file.read()
    if job["memory"]:
        bound_memory(job["memory"])
    sys.argv = [path]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, builtins
    sys.modules["__main__"] = main
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as e:
        if e.code is not None and not isinstance(e.code, int):
            print(e.code, file=sys.stderr)
        leave(exit_code_of(e))
    except BaseException as e:
        traceback.print_exception(without_own_frames(e))
        leave(exit_code_of(e))
    leave(0)


def run_once():
    job = read_job(0)
    me = os.getpid()
    refused = enter(job)
    if refused is not None or job.get("files_only"):
        if refused is not None:
            report(2, job, {"refused": refused})
        os._exit(1 if refused is not None else 0)
    find_packages()
    # Line buffering, so that the output before a kill is kept.
    sys.stdout.reconfigure(line_buffering=True)
    if "script" in job:
        run_script(job)
    display, code, error = Display(), 0, None
    space = new_main(display)
    try:
        run_cell(job["code"], "<code>", space, display, 1)
    except BaseException as e:
        code = exit_code_of(e)
        if code != 0 or not isinstance(e, SystemExit):
            error = describe(e)
    leave(code, job, {"error": error, "outputs": display.items} if os.getpid() == me else None)


run_once()
