// Tabs of the person's profile. What other clients opened in contexts of their own is not among them.
'use strict';

const {firstLine, limits} = require('./bounds');
const {Failure} = require('./failure');
const {soon} = require('./operation');

const kEmptyMs = 3000;

async function tabs(op, values, browser) {
  await browser.look();
  await browser.refresh(op);
  const list = browser.list();
  if (list.length > limits.tabs) op.note(`${list.length} tabs are open: the first ${limits.tabs} are in the list`);
  if (browser.silent.size > 0) op.note(`${browser.silent.size} more ${browser.silent.size === 1 ? 'tab does' : 'tabs do'} not answer`);
  return {data: list.slice(0, limits.tabs).map((tab) => browser.describe(tab))};
}

async function create(op, values, browser) {
  const tab = browser.current = op.tab = await browser.open(op);
  if (values.url) {
    await op.within(tab.page.goto(values.url, op.options())).catch((error) => {
      throw new Failure(`tab ${browser.indexOf(tab)} was opened, but: ${firstLine(error)}`);
    });
  }
  return {data: {...browser.describe(tab), title: await browser.title(op)}};
}

// Without a tab the browser would end, so the last one is emptied.
async function close(op, values, browser) {
  const tab = browser.needTab(values.index);
  const last = browser.tabs.size === 1;
  const emptying = async () => {
    const gone = op.within(tab.page.goto('about:blank', op.options({}, kEmptyMs))).then(() => true, () => false);
    return soon(gone, kEmptyMs + 500, false);
  };
  const emptied = last && !tab.crashed && await emptying();
  if (last && emptied) {
    tab.elements = null;
  } else {
    if (last) browser.current = await browser.open(op);
    await browser.closeTab(tab, op);
  }
  await browser.look();
  await browser.refresh(op);
  return {data: {closed: !last, tabs: browser.list().slice(0, limits.tabs).map((one) => browser.describe(one))}};
}

async function activate(op, values, browser) {
  const tab = browser.needTab(values.index);
  await op.within(browser.root.send('Target.activateTarget', {targetId: tab.targetId}));
  browser.current = tab;
  await browser.refresh(op);
  return {data: browser.describe(tab)};
}

// Files that the browser has downloaded since the driver began, or is about to have.
async function downloads(op, values, browser) {
  return {data: [...browser.downloads.values()].map(({guid, url: from, name, state, bytes, path}) => (
    {guid, url: from, suggestedFilename: name, state, bytes, path}))};
}

// What the agent's own answers about the browser need of a page.
async function info(op, values, browser) {
  await browser.look();
  await browser.refresh(op);
  const tab = browser.current;
  const viewport = tab === null ? null : await soon(tab.call(tab.targetId, 'viewport').catch(() => null), 2000, null);
  const {userAgent} = await op.within(browser.root.send('Browser.getVersion'));
  return {data: {user_agent: userAgent, page_viewport: viewport, tabs: browser.tabs.size, current: tab === null ? null : browser.describe(tab)}};
}

module.exports = {tabs, tab_create: create, tab_close: close, tab_activate: activate, downloads, info};
