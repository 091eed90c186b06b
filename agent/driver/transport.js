// The socket to the browser: one message is JSON and a NUL, both ways. Playwright is one user of it (send, close, onmessage, onclose);
// the driver itself is the other one, with sessions of its own that playwright never hears of (command, listen).
//
// Pages decide how large messages are. What is beyond a limit is thrown away while it arrives: an answer becomes an error, an event is
// left out. Without that a page that logs texts of 100 MB fills the driver's memory.
'use strict';

const net = require('net');

const {KiB, MiB} = require('./bounds');
const {Failure} = require('./failure');

const kMessageBytes = 96 * MiB;
const kEventBytes = new Map([
  ['Runtime.consoleAPICalled', 64 * KiB],
  ['Runtime.exceptionThrown', 64 * KiB],
  ['Log.entryAdded', 64 * KiB],
  ['Network.requestWillBeSent', 1 * MiB],
  ['Network.requestWillBeSentExtraInfo', 1 * MiB],
  ['Network.responseReceived', 1 * MiB],
  ['Network.responseReceivedExtraInfo', 1 * MiB],
  ['Network.webSocketFrameReceived', 64 * KiB],
  ['Network.webSocketFrameSent', 64 * KiB],
  ['Network.eventSourceMessageReceived', 64 * KiB],
]);
// Ids of the driver's own commands; playwright counts from 1.
const kFirstId = 1_000_000_000;
const kEndBytes = 512;
const kGreetingBytes = 4 * KiB;

// Takes the bytes of the socket apart into messages.
class Splitter {
  constructor(message, dropped) {
    this.message = message;
    this.dropped = dropped;
    this.begin();
  }

  begin() {
    this.parts = [];
    this.size = 0;
    this.limit = 0;
    this.head = '';
    this.tail = Buffer.alloc(0);
  }

  take(bytes) {
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(0, at);
      this.add(bytes.subarray(at, end < 0 ? bytes.length : end));
      if (end < 0) return;
      this.end();
      at = end + 1;
    }
  }

  add(part) {
    this.size += part.length;
    if (this.head.length < kEndBytes) this.head += part.toString('latin1', 0, kEndBytes - this.head.length);
    if (this.limit === 0 && (this.head.length >= 64 || this.head.includes('}'))) {
      const method = /^\{"method":"([A-Za-z.]+)"/.exec(this.head)?.[1];
      this.limit = kEventBytes.get(method) ?? kMessageBytes;
    }
    if (this.limit === 0 || this.size <= this.limit) return this.parts.push(part);
    this.parts = [];
    this.tail = Buffer.concat([this.tail, part.subarray(-kEndBytes)]).subarray(-kEndBytes);
  }

  end() {
    const {parts, size, limit, head, tail} = this;
    this.begin();
    if (limit === 0 || size <= limit) return this.message((parts.length === 1 ? parts[0] : Buffer.concat(parts)).toString('utf8'));
    const id = /^\{"id":(\d+)/.exec(head)?.[1];
    const session = /"sessionId":"([0-9A-Za-z]+)"\}$/.exec(tail.toString('latin1'))?.[1] ?? /"sessionId":"([0-9A-Za-z]+)"/.exec(head)?.[1];
    this.dropped({id: id === undefined ? undefined : Number(id), sessionId: session, method: /"method":"([A-Za-z.]+)"/.exec(head)?.[1], size});
  }
}

class Transport {
  // As a client of caisson-cdp, which is greeted before anything else is said (agent/cdp/README.md).
  static connect(path) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(path, () => socket.write('{"hello":"browser"}\0'));
      let came = Buffer.alloc(0);
      const refuse = (why) => {
        socket.destroy();
        reject(why);
      };
      const take = (bytes) => {
        came = Buffer.concat([came, bytes]);
        const end = came.indexOf(0);
        if (end < 0) return came.length > kGreetingBytes ? refuse(new Failure('the greeting is too long')) : undefined;
        const hello = JSON.parse(came.subarray(0, end).toString('utf8'));
        if (hello.hello !== 'ok') return refuse(new Failure(`the browser refuses: ${hello.why}`));
        socket.off('data', take).off('error', refuse).off('close', ended);
        const transport = new Transport(socket);
        if (end + 1 < came.length) socket.emit('data', came.subarray(end + 1));
        resolve(transport);
      };
      const ended = () => reject(new Failure('it has ended'));
      socket.on('data', take).on('error', refuse).on('close', ended);
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.onmessage = undefined;
    this.onclose = undefined;
    this.ended = () => {};
    this.droppedEvent = () => {};
    // Whether playwright is to hear of a target, given its TargetInfo: 'now', 'never', or 'later', when release() is called.
    this.admits = () => 'now';
    this.held = new Map();  // target id → the message that playwright has not got yet
    this.lastId = kFirstId;
    this.pending = new Map();
    this.sessions = new Map();  // of the driver's own: id → Map of method → function
    this.hidden = new Set();    // sessions that the browser made for playwright, and of which it is not told
    const splitter = new Splitter((text) => this.enqueue(() => this.deliver(JSON.parse(text))), (what) => this.enqueue(() => this.drop(what)));
    socket.on('data', (bytes) => splitter.take(bytes));
    socket.on('error', () => {});
    socket.on('close', () => this.finish());
  }

  // Each message in a task of its own: playwright's promises need their turn between two messages; handed over in one go, connecting hangs.
  enqueue(task) { setImmediate(task); }

  send(message) { this.socket.write(`${JSON.stringify(message)}\0`); }

  close() { this.socket.destroy(); }

  finish() {
    for (const {reject} of this.pending.values()) reject(new Failure('the browser has ended'));
    this.pending.clear();
    this.ended();
    this.onclose?.();
  }

  drop({id, sessionId, method, size}) {
    if (id !== undefined) return this.deliver({id, sessionId, error: {code: -32000, message: `an answer of ${size} bytes is too large`}});
    this.droppedEvent(method ?? '', size);
  }

  deliver(message) {
    if (message.id >= kFirstId) {
      const waiting = this.pending.get(message.id);
      this.pending.delete(message.id);
      if (message.error) waiting?.reject(new Failure(String(message.error.message)));
      else waiting?.resolve(message.result);
      return;
    }
    const own = this.sessions.get(message.sessionId);
    if (own) return own.get(message.method)?.(message.params);
    if (this.hidden.has(message.sessionId)) return;
    if (!message.sessionId && message.method === 'Target.attachedToTarget') return this.attached(message);
    if (!message.sessionId && message.method === 'Target.detachedFromTarget' && this.forget(message.params)) return;
    this.onmessage?.(message);
  }

  attached(message) {
    const {targetInfo, sessionId} = message.params;
    const admitted = this.admits(targetInfo);
    if (admitted === 'never') this.hide(sessionId);
    else if (admitted === 'later') this.held.set(targetInfo.targetId, message);
    else this.onmessage?.(message);
  }

  // Whether playwright never heard of the session that has ended.
  forget({targetId, sessionId}) {
    const held = this.held.get(targetId)?.params.sessionId === sessionId && this.held.delete(targetId);
    return this.hidden.delete(sessionId) || held;
  }

  release(targetId) {
    const message = this.held.get(targetId);
    if (!this.held.delete(targetId)) return;
    this.enqueue(() => this.onmessage?.(message));
  }

  // The target goes on as if nobody had attached to it.
  hide(session) {
    this.hidden.add(session);
    this.send({id: ++this.lastId, method: 'Runtime.runIfWaitingForDebugger', params: {}, sessionId: session});
    this.send({id: ++this.lastId, method: 'Target.detachFromTarget', params: {sessionId: session}});
  }

  command(method, params = {}, sessionId) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      if (this.socket.destroyed) return reject(new Failure('the browser has ended'));
      this.pending.set(id, {resolve, reject});
      this.send({id, method, params, sessionId});
    });
  }

  // A session of the driver's own, made by `method` on `parent`.
  async session(method, params, parent) {
    const {sessionId} = await this.command(method, params, parent);
    const listeners = new Map();
    this.sessions.set(sessionId, listeners);
    return {
      id: sessionId,
      send: (name, args) => this.command(name, args, sessionId),
      on: (name, listener) => listeners.set(name, listener),
      forget: () => this.sessions.delete(sessionId),
    };
  }
}

module.exports = {Transport, Splitter};
