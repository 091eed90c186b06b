// Runs one script, then ends. The job comes through stdin as for python_cell.py; the rest of stdin is the script's own input.
'use strict';
{
  const fs = require('fs');
  const path = require('path');
  const url = require('url');
  const vm = require('vm');
  const Module = require('module');

  const readExactly = (size) => {
    const out = Buffer.alloc(size);
    for (let at = 0; at < size;) {
      const got = fs.readSync(0, out, at, size - at, null);
      if (got === 0) process.reallyExit(0);  // this process is not wanted any more
      at += got;
    }
    return out;
  };
  let head = '';
  while (!head.endsWith('\n')) head += readExactly(1).toString('latin1');
  const job = JSON.parse(readExactly(Number(head)).toString());

  const report = (value) => {
    const text = Buffer.from(JSON.stringify(value));
    let rest = Buffer.concat([Buffer.from(`\x1e${job.nonce} ${text.length}\n`), text]);
    for (let tries = 0; rest.length > 0 && tries < 100000;) {
      try {
        rest = rest.subarray(fs.writeSync(2, rest));
      } catch (e) {
        if (e.code !== 'EAGAIN') return;
        ++tries;
      }
    }
  };
  const clip = (text) => {
    const whole = text.toWellFormed?.() ?? text;
    return whole.length <= 65536 ? whole : `${whole.slice(0, 32768)}\n...\n${whole.slice(-32768)}`;
  };
  process.on('uncaughtExceptionMonitor', (error) => {
    const known = error !== null && typeof error === 'object';
    try {
      const stack = clip(String(known ? error.stack ?? '' : error)).split('\n');
      const own = stack.findIndex((line) => line.includes('(eval at <anonymous> ([eval]'));
      report({error: {
        ename: known ? String(error.name ?? 'Error') : 'Error',
        evalue: clip(String(known ? error.message ?? '' : error)),
        traceback: own < 0 ? stack : stack.slice(0, own),
      }});
    } catch {
      // An error that cannot be described still ends the process.
    }
  });

  const refuse = (what) => {
    report({refused: what});
    process.reallyExit(1);
  };
  let dir = job.cwd;
  try {
    // Without a directory of the client's choice, its files get one that ends with the session.
    if (job.own_directory) dir = fs.mkdtempSync(`${fs.existsSync('/dev/shm') ? '/dev/shm' : '/tmp'}/run-`);
    process.chdir(dir);
    dir = process.cwd();
  } catch (e) {
    refuse(`cwd ${dir}: ${e.code}`);
  }
  for (const [name, text] of Object.entries(job.files ?? {})) {
    try {
      fs.mkdirSync(path.dirname(path.resolve(dir, name)), {recursive: true});
      fs.writeFileSync(path.resolve(dir, name), text);
    } catch (e) {
      refuse(`file ${name}: ${e.code}`);
    }
  }

  // An ES module is a text that does not parse as CommonJS, for one of the reasons that Node.js itself lists.
  const isModule = (code) => {
    try {
      new vm.Script(Module.wrap(code));
      return false;
    } catch (e) {
      return /import statement outside a module|Unexpected token 'export'|'import\.meta' outside|await is only valid/.test(e.message);
    }
  };
  for (const name of ['require', 'module', 'exports', '__filename', '__dirname']) delete globalThis[name];
  if (isModule(job.code)) {
    const name = `.run-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`;
    let file = path.join(dir, name);
    try {
      fs.writeFileSync(file, job.code, {flag: 'wx'});
    } catch {
      file = path.join('/tmp', name);
      fs.writeFileSync(file, job.code, {flag: 'wx'});
    }
    const remove = () => {
      try {
        fs.unlinkSync(file);
      } catch {
        // Removed already.
      }
    };
    process.on('exit', remove);
    process.argv = [process.execPath, file];
    import(url.pathToFileURL(file)).finally(remove);
  } else {
    const file = path.join(dir, 'main.js');
    process.argv = [process.execPath, file];
    const main = new Module(file, undefined);
    main.filename = file;
    main.paths = Module._nodeModulePaths(dir);
    process.mainModule = main;
    main._compile(job.code, file);
    main.loaded = true;
  }
}
