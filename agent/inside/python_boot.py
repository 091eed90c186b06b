import os
n, s = int(os.read(0, 8)), b""
while len(s) < n:
    s += os.read(0, n - len(s)) or os._exit(0)
exec(compile(s, "<caisson>", "exec"))
