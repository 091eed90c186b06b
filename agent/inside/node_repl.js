// A Node.js that keeps its variables: job after job, until its stdin ends. After each job, a mark in both streams shows its
// end. Code is evaluated as in the console of developer tools (the inspector's replMode): await works at the top level, and
// const and let may be declared again.
'use strict';
{
  const fs = require('fs');
  const inspector = require('inspector');
  const Module = require('module');
  const path = require('path');
  const {Readable} = require('stream');
  const util = require('util');

  const control = process.stdin;
  const out = process.stdout;
  const err = process.stderr;
  const after = setTimeout;
  const session = new inspector.Session();
  session.connect();
  const post = (method, parameters) => new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => error ? reject(error) : resolve(result));
  });

  // The value of a RemoteObject, which a function of ours hands over.
  let taken;
  Object.defineProperty(globalThis, Symbol.for('caisson.take'), {value: (value) => { taken = value; }});
  const valueOf = async (remote) => {
    if (remote.objectId === undefined) {
      if (remote.unserializableValue !== undefined) {
        const text = remote.unserializableValue;
        return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
      }
      return remote.value;
    }
    await post('Runtime.callFunctionOn', {
      objectId: remote.objectId,
      functionDeclaration: 'function() { "use strict"; globalThis[Symbol.for("caisson.take")](this); }',
    });
    const value = taken;
    taken = undefined;
    return value;
  };

  const clip = (text) => {
    const whole = text.toWellFormed?.() ?? text;
    return whole.length <= 65536 ? whole : `${whole.slice(0, 32768)}\n...\n${whole.slice(-32768)}`;
  };
  const describe = (error) => {
    const known = error !== null && typeof error === 'object';
    try {
      const stack = clip(String(known ? error.stack ?? '' : error)).split('\n');
      const own = stack.findIndex((line) => line.includes('Session.post (node:inspector'));
      let evalue = clip(String(known ? error.message ?? '' : error));
      if (known && error.code === 'ERR_VM_DYNAMIC_IMPORT_CALLBACK_MISSING') {
        evalue = 'import() is not to be had in a REPL: use require() or an import statement';
      }
      return {
        ename: known ? String(error.name ?? 'Error') : 'Error',
        evalue,
        traceback: own < 0 ? stack : stack.slice(0, own),
      };
    } catch {
      return {ename: 'Error', evalue: '', traceback: []};
    }
  };

  // An evaluated script cannot have import statements, so they become require().
  const withoutImports = (code) => code.replace(
    /^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|\{([^}]*)\}\s*)?(?:from\s*)?(['"][^'"\n]+['"])[ \t]*;?/gm,
    (_, one, all, names, from) => {
      const parts = [];
      if (one) parts.push(`const ${one} = ((m) => m && m.__esModule ? m.default : m)(require(${from}));`);
      if (all) parts.push(`const ${all} = require(${from});`);
      if (names) parts.push(`const {${names.replace(/\s+as\s+/g, ': ')}} = require(${from});`);
      return parts.length > 0 ? parts.join(' ') : `require(${from});`;
    });

  const enter = (job) => {
    try {
      if (job.cwd) process.chdir(job.cwd);
    } catch (e) {
      return `cwd ${job.cwd}: ${e.code}`;
    }
    for (const [name, text] of Object.entries(job.files ?? {})) {
      try {
        fs.mkdirSync(path.dirname(path.resolve(name)), {recursive: true});
        fs.writeFileSync(path.resolve(name), text);
      } catch (e) {
        return `file ${name}: ${e.code}`;
      }
    }
    globalThis.require = Module.createRequire(path.join(process.cwd(), 'repl.js'));
    Object.defineProperty(process, 'stdin', {value: Readable.from(job.input ? [job.input] : []), configurable: true, writable: true});
    return null;
  };

  let count = 0;
  const run = async (job) => {
    const refused = enter(job);
    if (refused !== null) return {refused};
    if (job.code !== '') ++count;
    const answer = {error: null, count, exit_code: 0, outputs: [], timeout: false};
    const timeout = Symbol('timeout');
    let timer;
    const late = new Promise((resolve) => { timer = after(resolve, job.timeout_ms, timeout); });
    const evaluate = (expression) => post('Runtime.evaluate', {
      expression,
      replMode: true,
      awaitPromise: true,
      timeout: job.timeout_ms,
      objectGroup: 'job',
    });
    const evaluated = evaluate(job.code).then((r) => {
      const was = r.exceptionDetails?.exception?.description ?? '';
      return was.startsWith('SyntaxError: Cannot use import statement') ? evaluate(withoutImports(job.code)) : r;
    });
    let result;
    try {
      result = await Promise.race([evaluated, late]);
    } catch (e) {
      // An error of the protocol itself: a loop was ended at its timeout.
      result = timeout;
    } finally {
      clearTimeout(timer);
    }
    if (result === timeout) {
      evaluated.catch(() => {});
      return {...answer, timeout: true};
    }
    if (result.exceptionDetails) {
      const details = result.exceptionDetails;
      const thrown = details.exception ? await valueOf(details.exception) : details.text;
      answer.error = describe(thrown);
      answer.exit_code = 1;
    } else if (result.result.type !== 'undefined') {
      const value = await valueOf(result.result);
      globalThis._ = value;
      answer.outputs.push({
        output_type: 'execute_result',
        data: {'text/plain': clip(util.inspect(value))},
        metadata: {},
        execution_count: count,
      });
    }
    await post('Runtime.releaseObjectGroup', {objectGroup: 'job'});
    return answer;
  };

  const mark = (stream, job, value) => new Promise((resolve) => {
    const text = Buffer.from(JSON.stringify(value));
    stream.write(Buffer.concat([Buffer.from(`\x1e${job.nonce} ${text.length}\n`), text]), resolve);
  });
  const serve = async (job) => {
    let answer;
    try {
      answer = await run(job);
    } catch (e) {
      answer = {error: describe(e), count, exit_code: 1, outputs: [], timeout: false};
    }
    await mark(out, job, {});
    await mark(err, job, answer);
  };

  // A failure between two jobs, in a timer or a promise, is reported and ends nothing.
  process.on('uncaughtException', (error) => console.error('Uncaught', error));

  let held = Buffer.alloc(0);
  let turn = Promise.resolve();
  control.on('data', (part) => {
    held = Buffer.concat([held, part]);
    for (;;) {
      const line = held.indexOf(10);
      if (line < 0) return;
      const size = Number(held.subarray(0, line).toString());
      if (held.length < line + 1 + size) return;
      const job = JSON.parse(held.subarray(line + 1, line + 1 + size).toString());
      held = held.subarray(line + 1 + size);
      turn = turn.then(() => serve(job));
    }
  });
  control.on('end', () => turn.then(() => process.reallyExit(0)));
}
