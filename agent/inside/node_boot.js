{
  const read = (n) => {
    const out = Buffer.alloc(n);
    for (let at = 0, got; at < n; at += got) {
      if ((got = require('fs').readSync(0, out, at, n - at, null)) === 0) process.reallyExit(0);
    }
    return out.toString();
  };
  (0, eval)(read(Number(read(8))));
}
