// Takes the agent's requests: one operation at a time, beside which only ping and cancel are answered.
'use strict';

const {KiB, firstLine, limits, wellFormed} = require('./bounds');
const {Failure, invalid} = require('./failure');
const {Network} = require('./ops_network');
const {Operation} = require('./operation');
const {Recorder} = require('./record');
const {Console, Requests} = require('./rings');
const {parse} = require('./protocol');
const input = require('./ops_input');
const read = require('./ops_read');
const state = require('./ops_state');
const tabs = require('./ops_tabs');
const {wait} = require('./ops_wait');

const kDefaultMs = 30_000;
const kMostMs = 3_600_000;
const kInHead = 128 * KiB;
const kNothing = Buffer.alloc(0);

class Runner {
  constructor(browser, send, ffmpeg) {
    this.browser = browser;
    this.send = send;
    this.operation = null;
    this.after = Promise.resolve();  // what an operation leaves to be done after its answer
    this.recorder = new Recorder(ffmpeg);
    this.network = new Network(browser);
    this.console = new Console();
    this.requests = new Requests();
    this.connected = new Promise((resolve) => { this.isConnected = resolve; });
    this.ready = false;
    this.run = {
      ...input, ...read, ...state, ...tabs, wait,
      record: (op, values) => this.recorder.act(op, values, browser),
      console: async (op, {clear}) => ({data: this.console.list(clear)}),
      console_export: async (op, {clear}) => this.exportConsole(clear),
      headers: (op, values) => this.network.headers(op, values),
      scoped_headers: (op, values) => this.network.scopedHeaders(op, values),
      route_add: (op, values) => this.network.addRoute(op, values),
      route_remove: (op, values) => this.network.removeRoute(op, values),
      requests: async (op, values) => this.listRequests(values),
      export_har: async () => this.exportHar(),
    };
  }

  async connect() {
    this.browser.transport.droppedEvent = (method, size) => this.console.dropped(method, size);
    await this.browser.connect();
    this.console.watch(this.browser.context);
    this.requests.watch(this.browser.context);
    this.ready = true;
    this.isConnected();
  }

  take(head, body) {
    const {id, op} = head;
    if (!Number.isSafeInteger(id)) return this.answer({id: null, ok: false, message: 'id must be an integer', invalid: true});
    if (op === 'ping') return this.answer({id, ok: true, data: this.state()});
    if (op === 'cancel') return this.cancel(head);
    if (this.operation !== null) return this.answer({id, ok: false, message: `operation ${this.operation.id} is running`, busy: true});
    this.serve(head, body);
  }

  state() {
    return {connected: this.ready, running: this.operation?.id ?? null, keeps: {...this.network.keeps(), recording: this.recorder.current !== null}};
  }

  // {op: "cancel", id}: the operation with this id ends and is answered; cancel itself has no answer.
  cancel({id}) {
    if (this.operation?.id === id) this.operation.end('the operation was cancelled');
  }

  async serve(head, body) {
    const timeout = head.timeout_ms ?? kDefaultMs;
    const known = Number.isSafeInteger(timeout) && timeout > 0 && timeout <= kMostMs;
    const op = this.operation = new Operation(head.id, String(head.op).slice(0, 50), known ? timeout : kDefaultMs);
    let answer;
    let result = kNothing;
    try {
      if (!known) throw invalid(`timeout_ms must be from 1 to ${kMostMs}`);
      const {row, values} = parse(head);
      await op.within(this.after);
      await op.within(this.connected);
      ({answer, result} = this.success(await this.carryOut(op, row, values, body)));
      await this.browser.tellNews(op, row.tabs === true);
    } catch (error) {
      answer = {ok: false, message: firstLine(error)};
      if (error instanceof Failure && error.invalid) answer.invalid = true;
      if (op.late || error?.name === 'TimeoutError') answer.timeout = true;
      if (this.ready && !op.late) await this.browser.tellNews(op, false).catch(() => {});
    }
    this.close(op, answer.timeout === true);
    const hint = op.hint();
    this.answer({id: head.id, ...answer, ...(hint === undefined ? {} : {hint})}, result);
  }

  async carryOut(op, row, values, body) {
    this.browser.dialogs.operation = op;
    if (row.page) await op.within(this.browser.bringCurrent(op));
    const done = await op.within(this.run[op.name](op, values, this.browser, body));
    await op.within(this.browser.dialogs.closing);  // what the page did after a dialog may be done before we hear that it is closed
    return done;
  }

  // A large answer is the frame's body: "data" says that the body is the JSON of data, "file" that it is to be saved.
  success({data, json, file}) {
    if (file !== undefined) {
      if (file.length > limits.file) throw new Failure(`the answer has ${file.length} bytes, more than ${limits.file} are not handed out`);
      return {answer: {ok: true, data, body: 'file'}, result: file};
    }
    const text = json ?? JSON.stringify(wellFormed(data ?? null));
    if (json === undefined && text.length <= kInHead) return {answer: {ok: true, data: JSON.parse(text)}, result: kNothing};
    const bytes = Buffer.from(text, 'utf8');
    if (bytes.length > limits.file) throw new Failure(`the answer has ${bytes.length} bytes, more than ${limits.file} are not handed out`);
    return {answer: {ok: true, body: 'data'}, result: bytes};
  }

  // After a timeout the page may still run what the operation began: it is ended before the next operation.
  close(op, late) {
    op.close();
    this.browser.dialogs.operation = null;
    this.operation = null;
    const tab = op.tab ?? this.browser.current;
    if (late && tab !== null) this.after = this.browser.dialogs.drain(tab, tab.interrupt().catch(() => {}));
  }

  answer(head, body = kNothing) { this.send(head, body); }

  exportConsole(clear) {
    const all = this.console.list(clear);
    return {data: {count: all.length}, file: Buffer.from(JSON.stringify(all, null, 1), 'utf8')};
  }

  listRequests({filter, limit = 100}) {
    if (limit < 0 || limit > limits.requests) throw invalid(`limit must be from 0 to ${limits.requests}`);
    return {data: this.requests.list(filter, limit)};
  }

  exportHar() {
    const har = this.requests.har('1');
    return {data: {count: har.log.entries.length}, file: Buffer.from(JSON.stringify(har), 'utf8')};
  }
}

module.exports = {Runner};
