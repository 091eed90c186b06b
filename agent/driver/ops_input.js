// Navigation and input.
'use strict';

const {clip, firstLine, url} = require('./bounds');
const {Failure, invalid} = require('./failure');
const {keyName} = require('./keys');
const {located, byIndex} = require('./locate');

const kWaits = ['load', 'domcontentloaded', 'networkidle', 'commit'];
const kButtons = ['left', 'right', 'middle'];

const place = async (op, browser) => ({url: url(op.tab.page.url()), title: await browser.title(op)});

// A page whose renderer has died answers nothing: another tab takes its place.
async function revive(op, browser) {
  const dead = op.tab;
  op.tab = browser.current = await browser.open(op);
  await browser.closeTab(dead, op);
  browser.news = [];
  op.note('the page had crashed: its tab was replaced');
}

// A navigation that has not begun to show a page within its time is stopped: the tab would go elsewhere during a later operation.
async function navigating(op, browser, go) {
  let arrived = false;
  const page = op.tab.page;
  const notice = (frame) => { if (frame === page.mainFrame()) arrived = true; };
  page.on('framenavigated', notice);
  try {
    const response = await op.within(go(page));
    return {...await place(op, browser), status: response?.status() ?? null};
  } catch (error) {
    if (!arrived) op.tab.session.send('Page.stopLoading').catch(() => {});
    throw error;
  } finally {
    page.off('framenavigated', notice);
  }
}

async function navigate(op, values, browser) {
  const waitUntil = values.wait_until ?? 'load';
  if (!kWaits.includes(waitUntil)) throw invalid(`wait_until must be one of ${kWaits.join(', ')}`);
  if (Buffer.byteLength(values.url) > 2 * 1024 * 1024) throw invalid('the url is too long');
  if (op.tab.crashed) await revive(op, browser);
  op.tab.elements = null;
  return {data: await navigating(op, browser, (page) => page.goto(values.url, op.options({waitUntil})))};
}

const history = (step, there) => async (op, values, browser) => {
  op.tab.elements = null;
  const {currentIndex, entries} = await op.within(op.tab.session.send('Page.getNavigationHistory'));
  if (there !== 0 && !entries[currentIndex + there]) throw new Failure(`there is no page to go ${there < 0 ? 'back' : 'forward'} to`);
  return {data: await navigating(op, browser, (page) => page[step](op.options()))};
};

async function reload(op, values, browser) {
  if (op.tab.crashed) {
    const {url: address} = browser.describe(op.tab);
    await revive(op, browser);
    return {data: await navigating(op, browser, (page) => page.goto(address, op.options()))};
  }
  op.tab.elements = null;
  return {data: await navigating(op, browser, (page) => page.reload(op.options()))};
}

async function inView(op, {x, y}) {
  const {width, height} = await op.within(op.tab.call(op.tab.targetId, 'viewport'));
  if (x < 0 || y < 0 || x >= width || y >= height) throw new Failure(`${x}, ${y} is not in the page's window, which has ${width} x ${height} pixels`);
}

async function click(op, values, browser) {
  const button = values.button ?? 'left', clickCount = values.click_count ?? 1;
  if (!kButtons.includes(button)) throw invalid(`button must be one of ${kButtons.join(', ')}`);
  if (clickCount < 1 || clickCount > 3) throw invalid('click_count must be from 1 to 3');
  const locator = await located(op, values);
  if (locator !== null) {
    await op.within(locator.click(op.options({button, clickCount})));
  } else {
    await inView(op, values);
    await op.within(op.tab.page.mouse.click(values.x, values.y, {button, clickCount}));
  }
  return {data: await place(op, browser)};
}

async function hover(op, values, browser) {
  const locator = await located(op, values);
  if (locator !== null) {
    await op.within(locator.hover(op.options()));
  } else {
    await inView(op, values);
    await op.within(op.tab.page.mouse.move(values.x, values.y));
  }
  return {data: await place(op, browser)};
}

async function fill(op, values) {
  if (values.selector === undefined && values.index === undefined) throw invalid('selector or index must be given');
  const locator = await located(op, values);
  await op.within(locator.fill(values.text, op.options()));
  return {data: null};
}

// Character by character: a text with delays ends with its operation, not later.
async function type(op, values) {
  const delay = values.delay ?? 0;
  if (delay < 0 || delay > 10_000) throw invalid('delay must be from 0 to 10000 milliseconds');
  for (const character of values.text) {
    op.check();
    await op.within(op.tab.page.keyboard.type(character));
    if (delay > 0) await op.pause(delay);
  }
  return {data: null};
}

async function pressKey(op, values) {
  await op.within(op.tab.page.keyboard.press(values.key.length > 1 ? values.key.split('+').map(keyName).join('+') || '+' : values.key));
  return {data: null};
}

async function hotKey(op, values) {
  if (values.keys.length < 1 || values.keys.length > 8) throw invalid('keys must be one to eight names');
  await op.within(op.tab.page.keyboard.press(values.keys.map(keyName).join('+')));
  return {data: null};
}

async function selectOption(op, values) {
  const options = ['value', 'label', 'index'].filter((name) => values[name] !== undefined);
  if (options.length === 0) throw invalid('value, label or index must be given');
  const wanted = {[options[0]]: values[options[0]]};
  const selected = await op.within(op.tab.page.locator(values.selector).selectOption(wanted, op.options()));
  return {data: {selected: selected.slice(0, 1000).map((value) => clip(value, 1024))}};
}

const setChecked = (checked) => async (op, values) => {
  await op.within(op.tab.page.locator(values.selector).setChecked(checked, op.options()));
  return {data: null};
};

// Files by paths that the browser reads itself, or as bytes in the body: `contents` says the name, type and size of each in turn.
async function uploadFile(op, values, browser, body) {
  const files = values.contents === undefined ? values.files : inBody(values.contents, body);
  if (files === undefined) throw invalid('files or contents must be given');
  if (files.length > 100) throw invalid('at most 100 files can be given');
  await op.within(op.tab.page.locator(values.selector).setInputFiles(files, op.options()));
  return {data: {files: files.length}};
}

function inBody(contents, body) {
  let at = 0;
  const files = contents.map(({name, type: mimeType, size}) => {
    if (typeof name !== 'string' || !Number.isSafeInteger(size) || size < 0 || at + size > body.length) {
      throw invalid('contents must have the name and size of each file in the body');
    }
    at += size;
    return {name, mimeType: typeof mimeType === 'string' ? mimeType : 'application/octet-stream', buffer: body.subarray(at - size, at)};
  });
  if (at !== body.length) throw invalid('the files of contents are not all of the body');
  return files;
}

async function fillItem(op, item) {
  const {selector, index, value} = item;
  if (typeof selector !== 'string' && !Number.isSafeInteger(index)) throw invalid('an item must have a selector or an index');
  const locator = typeof selector === 'string' ? op.tab.page.locator(selector) : await byIndex(op, index);
  await op.within(locator.waitFor(op.options({state: 'attached'}, 5000)));
  const is = async (kind) => await op.within(locator.locator(`kind=${kind}`).count()) === 1;
  const texts = (Array.isArray(value) ? value : [value]).map((one) => String(one ?? ''));
  const options = op.options({}, 10_000);
  if (await is('check')) return op.within(locator.setChecked(![false, null, 0, '', 'false', '0', 'off', 'no'].includes(value), options));
  if (await is('file')) return op.within(locator.setInputFiles(texts, options));
  if (await is('select')) return op.within(locator.selectOption(texts, options));
  return op.within(locator.fill(texts.join('\n'), options));
}

// Goes on after an item that cannot be filled.
async function fillForm(op, values) {
  if (values.items.length > 200) throw invalid('at most 200 items can be given');
  const results = [];
  for (const [at, item] of values.items.entries()) {
    const which = typeof item.selector === 'string' ? {selector: clip(item.selector, 1024)} : {index: item.index ?? null};
    try {
      await fillItem(op, item);
      results.push({...which, success: true, error: null});
    } catch (error) {
      if (op.late) throw new Failure(`${op.signal.reason}: ${at} of ${values.items.length} items were filled or refused`);
      results.push({...which, success: false, error: firstLine(error)});
    }
  }
  return {data: {items: results, filled: results.filter((one) => one.success).length}};
}

async function scroll(op, values) {
  const amount = values.amount ?? 300;
  const ways = {up: [0, -amount], down: [0, amount], left: [-amount, 0], right: [amount, 0]};
  const way = values.direction ?? 'down';
  if (!Object.hasOwn(ways, way)) throw invalid(`direction must be one of ${Object.keys(ways).join(', ')}`);
  await op.within(op.tab.page.mouse.wheel(...ways[way]));
  // The wheel is answered before the page has moved: two animation frames later it has, unless it scrolls smoothly.
  await op.within(op.tab.call(op.tab.targetId, 'settled'));
  return {data: await op.within(op.tab.call(op.tab.targetId, 'scrolled'))};
}

async function scrollTo(op, values) {
  return {data: await op.within(op.tab.call(op.tab.targetId, 'scrollTo', values.x ?? 0, values.y ?? 0))};
}

async function scrollToElement(op, values) {
  await op.within(op.tab.page.locator(values.selector).scrollIntoViewIfNeeded(op.options()));
  return {data: await op.within(op.tab.call(op.tab.targetId, 'scrolled'))};
}

module.exports = {
  navigate, back: history('goBack', -1), forward: history('goForward', 1), reload, click, fill, type, press_key: pressKey, hot_key: hotKey, hover,
  select_option: selectOption, check: setChecked(true), uncheck: setChecked(false), upload_file: uploadFile, fill_form: fillForm, scroll,
  scroll_to: scrollTo, scroll_to_element: scrollToElement,
};
