// One operation: its deadline, its end, and what is to be told beside its result.
'use strict';

const {clip, limits} = require('./bounds');
const {Failure} = require('./failure');

const kMostNotes = 12;
const kLeastMs = 50;

class Operation {
  constructor(id, name, timeoutMs) {
    this.id = id;
    this.name = name;
    this.started = Date.now();
    this.deadline = this.started + timeoutMs;
    // Playwright's own limit comes a little sooner: its message says what it waited for.
    this.early = Math.min(250, timeoutMs / 5);
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.notes = [];
    this.left_out = 0;
    this.tab = null;
    this.running = true;
    this.late = false;
    this.over = new Promise((resolve, reject) => {
      this.end = (why) => {
        if (!this.running) return;
        this.late = true;
        this.controller.abort(why);
        reject(new Failure(why));
      };
    });
    this.over.catch(() => {});
    this.timer = setTimeout(() => this.end(`${name} did not end within ${timeoutMs / 1000} seconds`), timeoutMs);
  }

  // Milliseconds for a call of playwright.
  left(most = Infinity) { return Math.max(Math.min(this.deadline - this.early - Date.now(), most), kLeastMs); }

  // Options of a call of playwright, which ends with the operation. `timeout` in ms is the caller's own, shorter limit.
  options(more = {}, timeout = Infinity) { return {...more, timeout: this.left(timeout), signal: this.signal}; }

  note(text) {
    if (this.notes.length < kMostNotes) this.notes.push(text);
    else ++this.left_out;
  }

  hint() {
    if (this.notes.length === 0) return undefined;
    const more = this.left_out > 0 ? [`${this.left_out} more of these`] : [];
    return clip([...more, ...this.notes].join('; '), limits.hint);
  }

  // Throws when the operation has ended: for loops that call nothing which would.
  check() { if (this.signal.aborted) throw new Failure(String(this.signal.reason)); }

  // Waits, and wakes at the end of the operation.
  pause(ms) {
    return new Promise((resolve, reject) => {
      const wake = () => {
        clearTimeout(timer);
        reject(new Failure(String(this.signal.reason)));
      };
      const timer = setTimeout(() => {
        this.signal.removeEventListener('abort', wake);
        resolve();
      }, ms);
      this.signal.addEventListener('abort', wake, {once: true});
      if (this.signal.aborted) wake();
    });
  }

  // `promise`, or the end of the operation, whichever comes first.
  within(promise) {
    promise.catch(() => {});
    return Promise.race([promise, this.over]);
  }

  close() {
    this.running = false;
    clearTimeout(this.timer);
  }
}

// `promise`, or `otherwise` after so many ms.
function soon(promise, ms, otherwise) {
  let timer;
  promise.catch(() => {});
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms, otherwise); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

module.exports = {Operation, soon};
