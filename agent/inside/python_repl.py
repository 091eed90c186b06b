# A Python that keeps its variables: job after job, until its stdin ends. After each job, a mark in both streams shows its end.


def serve():
    control = os.dup(0)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.reconfigure(line_buffering=True)
    display = Display()
    space = new_main(display)
    count = 0
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # between jobs there is nothing to interrupt
    while True:
        job = read_job(control)
        display.items, display.bytes = [], 0
        out = {"refused": enter(job)}
        me = os.getpid()
        if out["refused"] is None:
            find_packages()
            if "" not in sys.path[:1]:
                sys.path.insert(0, "")
            count += bool(job["code"])
            out.update(error=None, count=count, exit_code=0)
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                run_cell(job["code"], "<code %d>" % count, space, display, count)
            except BaseException as e:
                out["exit_code"] = exit_code_of(e)
                if out["exit_code"] != 0 or not isinstance(e, SystemExit):
                    out["error"] = describe(e)
            finally:
                try:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                except ValueError:
                    pass
            if os.getpid() != me:
                os._exit(0)  # a fork of the cell came back here
            out["outputs"] = display.items
        flush()
        report(1, job, {})
        report(2, job, out)


serve()
