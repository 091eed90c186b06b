// Cookies, and what else a profile keeps for its sites.
'use strict';

const fs = require('fs');

const {limits} = require('./bounds');
const {Failure, invalid} = require('./failure');

const kSameSite = {strict: 'Strict', lax: 'Lax', none: 'None', no_restriction: 'None'};
const kMostCookies = 3000;  // more than Chromium keeps

async function cookies(op, values, browser) {
  return {data: await op.within(browser.context.cookies(values.urls ?? []))};
}

// Members that playwright takes, also as extensions and other tools write them; others are left out.
function cookie(given) {
  const out = {name: given.name, value: given.value};
  for (const name of ['url', 'domain', 'path', 'httpOnly', 'secure', 'partitionKey']) {
    if (given[name] !== undefined && given[name] !== null) out[name] = given[name];
  }
  const expires = given.expires ?? given.expirationDate;
  if (typeof expires === 'number') out.expires = expires;
  const sameSite = kSameSite[String(given.sameSite ?? '').toLowerCase()];
  if (sameSite) out.sameSite = sameSite;
  if (out.domain !== undefined) out.path ??= '/';
  if (out.domain !== undefined) delete out.url;
  return out;
}

async function setCookies(op, values, browser) {
  if (values.cookies.length > kMostCookies) throw invalid(`at most ${kMostCookies} cookies can be given`);
  for (const given of values.cookies) {
    if (typeof given.name !== 'string' || typeof given.value !== 'string') throw invalid('a cookie must have a name and a value');
    if (!given.domain && !given.url) throw invalid(`the cookie must have a domain or a url`);
  }
  await op.within(browser.context.addCookies(values.cookies.map(cookie)));
  return {data: {set: values.cookies.length}};
}

async function clearCookies(op, values, browser) {
  await op.within(browser.context.clearCookies());
  return {data: null};
}

async function save(op, values, browser) {
  const state = await op.within(browser.context.storageState());
  await inFront(op, browser);
  const file = Buffer.from(JSON.stringify(state), 'utf8');
  if (file.length > limits.file) throw new Failure(`the state has ${file.length} bytes, more than ${limits.file} are not saved`);
  return {data: {cookies: state.cookies.length, origins: state.origins.length}, file};
}

// From the body, or from a file that this session can read.
async function load(op, values, browser, body) {
  const bytes = values.path === undefined ? body : await readBounded(values.path);
  let state;
  try {
    state = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new Failure('the file is not JSON');
  }
  const {cookies: given = [], origins = []} = state ?? {};
  if (!Array.isArray(given) || !Array.isArray(origins)) throw new Failure('the file holds no state of a browser');
  await op.within(browser.context.setStorageState({cookies: given, origins}));
  await inFront(op, browser);
  return {data: {cookies: given.length, origins: origins.length}};
}

async function readBounded(path) {
  let file;
  try {
    file = await fs.promises.open(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile()) throw new Failure('it is no file');
    if (stat.size > limits.text) throw new Failure(`it has ${stat.size} bytes, more than ${limits.text} are not read`);
    return await file.readFile();
  } catch (error) {
    throw new Failure(`the file cannot be read: ${error.code ?? error.message}`);
  } finally {
    await file?.close();
  }
}

// Playwright opens a tab to reach the storage of origins, and closes it.
async function inFront(op, browser) {
  if (browser.current !== null) await op.within(browser.root.send('Target.activateTarget', {targetId: browser.current.targetId})).catch(() => {});
}

module.exports = {cookies, cookies_set: setCookies, cookies_clear: clearCookies, state_save: save, state_load: load};
