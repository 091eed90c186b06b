// A tab: playwright's page, the driver's own session with it, and worlds of the driver's own in its frames.
'use strict';

const fs = require('fs');
const path = require('path');

const {limits} = require('./bounds');
const {Failure} = require('./failure');
const {soon} = require('./operation');

const kVisibleMs = 700;
const kSliceChars = 4 * 1024 * 1024;
const kGone = /Cannot find context|Could not find object|Invalid remote object|Cannot find object|context was destroyed|navigated or closed|No frame/;

// What runs in the worlds: in_page.js is a function that returns an object.
const library = `(${fs.readFileSync(path.join(__dirname, 'in_page.js'), 'utf8').replace(/^[^]*?\n'use strict';\n/, '').trim().replace(/;$/, '')})()`;

class Tab {
  constructor(browser, page, targetId, session) {
    this.browser = browser;
    this.page = page;
    this.targetId = targetId;
    this.session = session;
    this.worlds = new Map();    // frame id → {session, object}
    this.sessions = new Map();  // frame id → the session of a frame in a process of its own
    this.elements = null;       // of the last call of `elements`
    this.crashed = false;
    this.closed = false;
    this.shown = false;
  }

  // Whether the person sees the tab. A page that does not answer is not taken for visible.
  async visible() {
    this.shown = await soon(this.call(this.targetId, 'visible').catch(() => false), kVisibleMs, false);
    return this.shown;
  }

  // A world of the driver's in a frame: the page's code reaches no object of it, and what the page does to prototypes is not seen in it.
  // The id of the main frame is that of the tab. A frame has the process of its `parent`, or one of its own, which is a target by its id.
  async world(frameId, parent = this.session) {
    const known = this.worlds.get(frameId);
    if (known) return known;
    let session = this.sessions.get(frameId) ?? parent;
    let made;
    try {
      made = await session.send('Page.createIsolatedWorld', {frameId, worldName: 'caisson'});
    } catch (error) {
      if (frameId === this.targetId || this.sessions.delete(frameId)) throw error;
      session = await this.browser.attach(frameId);
      this.sessions.set(frameId, session);
      made = await session.send('Page.createIsolatedWorld', {frameId, worldName: 'caisson'});
    }
    const {result, exceptionDetails} = await session.send('Runtime.evaluate', {expression: library, contextId: made.executionContextId});
    if (exceptionDetails) throw new Failure('the page does not let its content be read');
    const world = {session, object: result.objectId};
    if (this.worlds.size > 200) this.worlds.clear();
    this.worlds.set(frameId, world);
    return world;
  }

  // Calls a method of the library in a frame; the answer is JSON. An id of an object holds the process and the document it came from,
  // so a world of an earlier document is noticed.
  async call(frameId, method, ...values) {
    for (let tries = 0; ; ++tries) {
      try {
        return await this.callIn(await this.world(frameId), method, ...values);
      } catch (error) {
        this.worlds.delete(frameId);
        if (tries > 0 || !kGone.test(error.message)) throw error;
      }
    }
  }

  callIn(world, method, ...values) {
    return this.run(world, 'function(method, ...values) { return this[method](...values); }', method, ...values);
  }

  async run(world, functionDeclaration, ...values) {
    const {result, exceptionDetails} = await world.session.send('Runtime.callFunctionOn', {
      objectId: world.object,
      functionDeclaration,
      arguments: values.map((value) => ({value})),
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails) throw new Failure(exceptionDetails.exception?.description?.split('\n')[0] ?? exceptionDetails.text);
    return result.value;
  }

  // A text of the page, fetched in slices, so that no message is larger than one. `maker` makes it: the name of a method of the library
  // that keeps a text, or {source}, a function to be run on the library.
  async text(op, frameId, maker, ...values) {
    const world = await op.within(this.world(frameId));
    const made = typeof maker === 'string' ? await op.within(this.call(frameId, 'keep', limits.text, maker, ...values)) :
      await op.within(this.run(world, maker.source, limits.text));
    if (made.bytes > limits.text) throw new Failure(`the text of the page has ${made.bytes} bytes, more than ${limits.text} are not handed out`);
    const parts = made.text === undefined ? [] : [made.text];
    for (let at = 0; made.text === undefined && at < made.length; at += kSliceChars) {
      parts.push(await op.within(this.callIn(this.worlds.get(frameId) ?? world, 'slice', at, at + kSliceChars)));
    }
    return {...made, text: parts.join('')};
  }

  // Ends code of the page that does not end, so that the next operation finds a page that answers. What does not end at the second
  // request either, such as one dialog after the other, loses its renderer: that is told to the renderer's other thread.
  async interrupt(answersMs = 300, most = 2) {
    const answers = () => soon(this.session.send('Runtime.evaluate', {expression: '0'}).then(() => true, () => true), answersMs, false);
    for (let asked = 0; asked < most && !this.closed && !this.crashed; ++asked) {
      if (await answers()) return;
      await soon(this.session.send('Runtime.terminateExecution').catch(() => {}), answersMs);
    }
    if (!this.closed && !this.crashed && !await answers()) await soon(this.session.send('Page.crash').catch(() => {}), answersMs);
  }
}

module.exports = {Tab};
