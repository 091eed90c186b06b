// What a page shows and says.
'use strict';

const fs = require('fs');

const {limits, clip, quote, url, wellFormed} = require('./bounds');
const {Failure, invalid} = require('./failure');
const {kEnter, located} = require('./locate');
const {soon} = require('./operation');
const {run} = require('./page_code');
const {size} = require('./picture');

const kFrameMs = 3000;
const kLate = Symbol('late');

// The last message of an exception, in one line.
function thrown({exception, text}) {
  const told = exception?.description ?? (exception && 'value' in exception ? String(exception.value) : text);
  return clip(told.split('\n')[0], limits.message);
}

async function screenshot(op, values) {
  const format = {png: 'png', jpg: 'jpeg', jpeg: 'jpeg'}[values.format ?? 'png'];
  if (!format) throw invalid('format must be png or jpeg');
  const quality = values.quality ?? undefined;
  if (quality !== undefined && (quality < 0 || quality > 100)) throw invalid('quality must be from 0 to 100');
  const jpeg = format === 'jpeg' ? {quality: quality ?? 80} : {};
  const {page, session, targetId} = op.tab;
  const viewport = await op.within(op.tab.call(targetId, 'viewport'));
  const whole = values.full_page ? await op.within(op.tab.call(targetId, 'page')) : viewport;
  let picture;
  if (values.selector !== undefined || values.index !== undefined) {
    const locator = await located(op, values);
    const box = await op.within(locator.boundingBox(op.options()));
    if (box !== null && (box.width > limits.side || box.height > limits.side)) throw new Failure(`the element has more than ${limits.side} pixels of a side`);
    picture = await op.within(locator.screenshot(op.options({type: format, ...jpeg})));
  } else if (whole.width > limits.side || whole.height > limits.side) {
    const clipped = {x: 0, y: 0, width: Math.min(whole.width, limits.side), height: Math.min(whole.height, limits.side), scale: 1};
    const {data} = await op.within(session.send('Page.captureScreenshot', {format, ...jpeg, clip: clipped, captureBeyondViewport: true}));
    picture = Buffer.from(data, 'base64');
    op.note(`the page has ${whole.width} x ${whole.height} pixels: the first ${limits.side} of a side are in the picture`);
  } else {
    picture = await op.within(page.screenshot(op.options({type: format, fullPage: values.full_page === true, ...jpeg})));
  }
  const {width, height} = size(picture);
  const data = {
    content_type: `image/${format}`, viewport_width: viewport.width, viewport_height: viewport.height,
    screenshot_width: width, screenshot_height: height,
  };
  return {data, file: picture};
}

const html = async (op, values) => ({data: (await op.tab.text(op, op.tab.targetId, 'html', values.outer === true)).text});
const text = async (op) => ({data: (await op.tab.text(op, op.tab.targetId, 'text')).text});

let markdownSource = null;
function markdownMaker() {
  const source = (name) => fs.readFileSync(require.resolve(name), 'utf8');
  // Both libraries stand in one function, which is compiled in the driver's world of the page.
  markdownSource ??= `function(most) {
    const load = (define) => { const module = {exports: {}}; define(module, module.exports); return module.exports; };
    const Readability = load((module, exports) => {${source('@mozilla/readability/Readability.js')}\n});
    const Turndown = load((module, exports) => {${source('turndown/lib/turndown.browser.umd.js')}\n});
    const made = new Turndown({headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-'});
    made.remove(['script', 'style', 'noscript', 'template', 'iframe']);
    const title = document.title;
    let article = null;
    try {
      article = new Readability(document.cloneNode(true), {maxElemsToParse: 50000, serializer: (element) => element}).parse();
    } catch {}
    for (const from of [article && article.content, document.body, document.documentElement]) {
      try {
        const text = from ? made.turndown(from).trim() : '';
        if (text) return this.keep(most, 'given', text, String((article && article.title) || title).slice(0, 1000));
      } catch {}
    }
    return this.keep(most, 'text', undefined, String(title).slice(0, 1000));
  }`;
  return markdownSource;
}

async function markdown(op) {
  const made = await op.tab.text(op, op.tab.targetId, {source: markdownMaker()});
  return {data: {title: clip(made.title, limits.title), markdown: made.text, url: url(op.tab.page.url())}};
}

// Elements of the page and of its frames. A frame's elements stand where the frame stands.
async function elements(op) {
  op.tab.elements = null;
  const out = [], places = [];
  let frames = 0, more = false;
  const visit = async (frameId, parent, chain, prefix, left, top, depth) => {
    const world = await op.within(op.tab.world(frameId, parent));
    const found = await op.within(op.tab.call(frameId, 'elements', limits.elements - out.length));
    const here = op.tab.worlds.get(frameId) ?? world;
    more ||= found.more;
    for (const item of found.items) {
      if (item.frame !== undefined) {
        if (++frames > limits.frames || depth >= limits.frameDepth || out.length >= limits.elements) continue;
        const inner = await frameOf(op, here, item.frame);
        if (inner === null) continue;
        const step = {world: here, kind: 'frames', number: item.frame};
        const prefixed = joined(prefix, item.selector, kEnter);
        const visited = visit(inner, here.session, [...chain, step], prefixed, left + item.x, top + item.y, depth + 1).catch((error) => {
          if (op.late) throw error;  // otherwise the frame has gone, or shows what cannot be read
        });
        if (await soon(visited, kFrameMs, kLate) === kLate) op.note('a frame does not answer: its elements are not in the list');
        continue;
      }
      if (out.length >= limits.elements) {
        more = true;
        break;
      }
      const {node, selector, x, y, width, height, ...rest} = item;
      const round = (value) => Math.round(value * 10) / 10;
      out.push({
        index: out.length, ...rest, selector: joined(prefix, selector) ?? '',
        x: round(left + x), y: round(top + y), width: round(width), height: round(height),
      });
      places.push([...chain, {world: here, kind: 'nodes', number: node}]);
    }
  };
  await visit(op.tab.targetId, undefined, [], '', 0, 0, 0);
  op.tab.elements = [...places];  // a frame that answers too late adds to places
  if (more) op.note(`the page has more elements: the first ${out.length} are in the list`);
  return {data: [...out]};
}

// Null when a part is missing, or the whole is longer than anybody would use.
function joined(prefix, selector, end = '') {
  const whole = prefix + selector + end;
  return prefix === null || selector === '' || whole.length > 4096 ? null : whole;
}

async function frameOf(op, world, number) {
  const {result} = await op.within(world.session.send('Runtime.callFunctionOn', {
    objectId: world.object, functionDeclaration: 'function(number) { return this.frame(number); }', arguments: [{value: number}],
  }));
  if (!result.objectId) return null;
  const {node} = await op.within(world.session.send('DOM.describeNode', {objectId: result.objectId}));
  world.session.send('Runtime.releaseObject', {objectId: result.objectId}).catch(() => {});
  return node.frameId ?? null;
}

// In the page's own world, as its code would. A function is called. What comes back is the page's: it is JSON of a bounded size, or refused.
async function evaluate(op, values) {
  const {session} = op.tab;
  const send = (method, more) => op.within(session.send(method, more));
  let release = true;
  try {
    const {result, exceptionDetails, kept} = await run(send, 'evaluate', values.expression);
    if (exceptionDetails) throw new Failure(thrown(exceptionDetails));
    release = kept;
    return {json: await jsonOf(send, result)};
  } finally {
    if (release) session.send('Runtime.releaseObjectGroup', {objectGroup: 'evaluate'}).catch(() => {});
  }
}

async function jsonOf(send, result) {
  if (result.type === 'undefined' || result.type === 'function') return 'null';
  if (result.type === 'symbol') throw new Failure('a symbol is no JSON value');
  let value = result.value ?? null;
  if (result.unserializableValue !== undefined) value = result.type === 'bigint' ? result.unserializableValue.replace('n', '') : null;
  if (result.objectId !== undefined) {
    const made = await send('Runtime.callFunctionOn', {
      objectId: result.objectId,
      functionDeclaration: `function(most) {
        const text = JSON.stringify(this);
        return typeof text !== "string" ? "null" : text.length > most ? text.length : text;
      }`,
      arguments: [{value: limits.evaluate}],
      returnByValue: true,
    });
    if (made.exceptionDetails) throw new Failure(thrown(made.exceptionDetails));
    if (typeof made.result.value !== 'string') throw tooLarge(made.result.value);
    if (Buffer.byteLength(made.result.value) > limits.evaluate) throw tooLarge(Buffer.byteLength(made.result.value));
    value = JSON.parse(made.result.value);
  }
  let text;
  try {
    text = JSON.stringify(wellFormed(value));
  } catch {
    throw new Failure('the value is nested too deeply');
  }
  if (Buffer.byteLength(text) > limits.evaluate) throw tooLarge(Buffer.byteLength(text));
  return text;
}

const tooLarge = (bytes) =>
  new Failure(`the value has ${Number(bytes) || 'too many'} bytes as JSON, more than ${limits.evaluate} are not handed out`);

async function findText(op, values) {
  if (values.keyword.trim() === '') throw invalid('keyword must not be empty');
  const hits = await op.within(op.tab.call(op.tab.targetId, 'find', values.keyword.slice(0, 10_000), limits.hits));
  if (hits.length >= limits.hits) op.note(`the first ${limits.hits} occurrences are in the list`);
  return {data: hits};
}

const captchaDetect = async (op) => ({data: await op.within(op.tab.call(op.tab.targetId, 'captcha'))});

async function captchaWait(op, values) {
  const every = Math.min(Math.max(values.poll_interval ?? 2, 0.1), 30) * 1000;
  for (;;) {
    const {detected, kind} = await op.within(op.tab.call(op.tab.targetId, 'captcha'));
    if (!detected) return {data: {resolved: true}};
    if (Date.now() + every >= op.deadline - op.early) {
      op.note(`${quote(kind)} is still there`);
      return {data: {resolved: false}};
    }
    await op.pause(every);
  }
}

module.exports = {
  screenshot, html, text, markdown, elements, evaluate, find_text: findText, captcha_detect: captchaDetect, captcha_wait: captchaWait,
};
