// Parts of the page driver that need no browser. CAISSON_DRIVER names its folder.
'use strict';

const assert = require('assert');
const path = require('path');
const {test} = require('node:test');

const part = (name) => require(path.join(process.env.CAISSON_DRIVER, name));
const {Splitter, Transport} = part('transport.js');
const {FrameReader, encode} = part('frames.js');
const {Ring, clip, firstLine, wellFormed} = part('bounds.js');
const {parse} = part('protocol.js');
const {Operation} = part('operation.js');
const {size} = part('picture.js');
const tabs = part('ops_tabs.js');

const split = (bytes, step) => {
  const messages = [], dropped = [];
  const splitter = new Splitter((text) => messages.push(text), (what) => dropped.push(what));
  for (let at = 0; at < bytes.length; at += step) splitter.take(bytes.subarray(at, at + step));
  return {messages, dropped};
};

test('messages come out the same however they are cut', () => {
  const whole = ['{"id":1,"result":{}}', `{"method":"Page.x","params":{"a":"${'ä'.repeat(300)}"}}`, '{}'];
  const bytes = Buffer.from(whole.map((text) => `${text}\0`).join(''));
  for (const step of [1, 3, 64, bytes.length]) assert.deepStrictEqual(split(bytes, step), {messages: whole, dropped: []});
});

test('an event beyond its limit is left out, and what follows is not', () => {
  const long = `{"method":"Runtime.consoleAPICalled","params":{"a":"${'x'.repeat(100000)}"},"sessionId":"ABC"}`;
  for (const step of [10, 70000, 1000000]) {
    const {messages, dropped} = split(Buffer.from(`${long}\0{"id":2}\0`), step);
    assert.deepStrictEqual(messages, ['{"id":2}']);
    assert.deepStrictEqual(dropped, [{id: undefined, sessionId: 'ABC', method: 'Runtime.consoleAPICalled', size: long.length}]);
  }
});

test('an answer beyond the limit keeps its id and session', () => {
  const answer = Buffer.concat([Buffer.from('{"id":77,"result":{"value":"'), Buffer.alloc(97 * 1024 * 1024, 'y'), Buffer.from('"},"sessionId":"DEF"}\0')]);
  const {messages, dropped} = split(answer, 65536);
  assert.deepStrictEqual(messages, []);
  assert.strictEqual(dropped[0].id, 77);
  assert.strictEqual(dropped[0].sessionId, 'DEF');
});

class FakeSocket {
  constructor() { this.sent = []; this.destroyed = false; }

  on() {}

  write(text) { this.sent.push(...text.split('\0').filter(Boolean).map((one) => JSON.parse(one))); }
}

test('playwright is told of a target when it is released', async () => {
  const transport = new Transport(new FakeSocket());
  const told = [];
  transport.onmessage = (message) => told.push(message.params.sessionId);
  transport.admits = ({targetId}) => ({a: 'now', b: 'never', c: 'later'})[targetId];
  const attached = (targetId) => ({method: 'Target.attachedToTarget', params: {sessionId: `s${targetId}`, targetInfo: {targetId}}});
  for (const id of ['a', 'b', 'c']) transport.deliver(attached(id));
  assert.deepStrictEqual(told, ['sa']);
  assert.deepStrictEqual(transport.socket.sent.map(({method}) => method), ['Runtime.runIfWaitingForDebugger', 'Target.detachFromTarget']);
  transport.deliver({method: 'Runtime.x', params: {sessionId: 'no'}, sessionId: 'sb'});
  transport.release('c');
  await new Promise(setImmediate);
  assert.deepStrictEqual(told, ['sa', 'sc']);
});

test('frames come out the same however they are cut', () => {
  const bytes = Buffer.concat([...encode({id: 1}, Buffer.alloc(0)), ...encode({id: 2}, Buffer.from('body')), ...encode({id: 3}, Buffer.alloc(0))]);
  for (const step of [1, 5, bytes.length]) {
    const frames = [];
    const reader = new FrameReader((head, body) => frames.push([head.id, body.toString()]));
    for (let at = 0; at < bytes.length; at += step) reader.take(bytes.subarray(at, at + step));
    assert.deepStrictEqual(frames, [[1, ''], [2, 'body'], [3, '']]);
  }
});

test('a text is cut between characters and well-formed', () => {
  assert.strictEqual(clip('äöü', 6), 'äöü');
  assert.ok(Buffer.byteLength(clip('🙂'.repeat(50), 42)) <= 42);
  assert.ok(!clip('🙂'.repeat(50), 42).includes('\ufffd'));
  assert.strictEqual(clip('a\ud800b', 100), 'a\ufffdb');
  assert.strictEqual(clip(undefined, 10), '');
  assert.deepStrictEqual({...wellFormed({'\ud800': ['\udc00']})}, {'\ufffd': ['\ufffd']});
});

test('the first line of an error has no colours', () => {
  assert.strictEqual(firstLine(new Error('\u001b[2mclick\u001b[22m: no\nCall log:')), 'click: no');
  assert.strictEqual(firstLine(undefined), 'no reason is known');
});

test('a ring keeps the last', () => {
  const ring = new Ring(3);
  for (let i = 0; i < 100; ++i) ring.add(i);
  assert.deepStrictEqual(ring.list(), [97, 98, 99]);
});

test('members are checked, and null is none', () => {
  assert.deepStrictEqual(parse({id: 1, op: 'click', selector: null, index: 3}).values, {index: 3});
  for (const head of [{op: 'click', index: 'x'}, {op: 'fill'}, {op: '__proto__'}, {op: 'toString'}, {op: 'html', path: 'x'}]) assert.throws(() => parse(head));
});

test('an operation ends at its deadline, and what waits for it wakes', async () => {
  const op = new Operation(1, 'html', 30);
  await assert.rejects(op.within(new Promise(() => {})), /html did not end within 0.03 seconds/);
  await assert.rejects(op.pause(10000));
  assert.throws(() => op.check());
});

test('of ten thousand tabs five hundred are listed', async () => {
  const list = Array.from({length: 10000}, (_, index) => ({index}));
  const browser = {look: async () => {}, refresh: async () => {}, list: () => list, silent: new Set(), describe: (tab) => tab};
  const op = new Operation(1, 'tabs', 1000);
  assert.strictEqual((await tabs.tabs(op, {}, browser)).data.length, 500);
  assert.match(op.hint(), /10000 tabs are open/);
  op.close();
});

test('the size of a picture that is none is zero', () => {
  for (const bytes of [Buffer.alloc(0), Buffer.from([0xff, 0xd8]), Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]), Buffer.alloc(100, 0xff)]) {
    assert.deepStrictEqual(size(bytes), {width: 0, height: 0});
  }
});
