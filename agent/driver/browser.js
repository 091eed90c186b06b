// The connection to the browser: its tabs, which of them is the current one, dialogs, and what became of tabs between two operations.
'use strict';

const os = require('os');

const {chromium, selectors} = require('playwright-core');

const {clip, limits, quote, url} = require('./bounds');
const {soon} = require('./operation');
const {Dialogs} = require('./dialogs');
const {engine} = require('./engine');
const {Failure} = require('./failure');
const {Tab} = require('./tab');

const kAnswersMs = 2000;
const kConnectMs = 60_000;
const kTogether = 100;
const kOpensMs = 700;
const kTitleMs = 10_000;

class Browser {
  constructor(transport) {
    this.transport = transport;
    this.root = null;       // the driver's own session with the browser
    this.context = null;    // playwright's, of the person's profile
    this.contextId = '';
    this.targets = new Map();  // TargetInfo of each tab, as the browser process tells it: no renderer is asked
    this.tabs = new Map();     // targetId → Tab, in the order in which they came
    this.silent = new Set();   // tabs that have not answered since playwright connected; it does not know them
    this.current = null;
    this.dialogs = new Dialogs(this);
    this.downloads = new Map();
    this.news = [];
    this.pageListeners = [];
  }

  async connect() {
    this.root = await this.transport.session('Target.attachToBrowserTarget');
    const {defaultBrowserContextId, browserContextIds} = await this.root.send('Target.getBrowserContexts');
    this.contextId = defaultBrowserContextId ?? '';
    // Tabs of other clients' contexts are theirs: playwright would take them for tabs of the person's.
    const foreign = new Set(browserContextIds);
    const ours = (info) => (this.contextId ? info.browserContextId === this.contextId : !foreign.has(info.browserContextId));
    const own = (info) => info.type === 'page' && ours(info);
    this.root.on('Target.targetCreated', ({targetInfo}) => { if (own(targetInfo)) this.targets.set(targetInfo.targetId, targetInfo); });
    this.root.on('Target.targetInfoChanged', ({targetInfo}) => {
      if (this.targets.has(targetInfo.targetId)) this.targets.set(targetInfo.targetId, targetInfo);
    });
    this.root.on('Target.targetDestroyed', ({targetId}) => this.gone(targetId));
    await this.root.send('Target.setDiscoverTargets', {discover: true, filter: [{type: 'page'}, {exclude: true}]});
    this.root.on('Browser.downloadWillBegin', (event) => this.downloadBegins(event));
    this.root.on('Browser.downloadProgress', (event) => this.downloadGoesOn(event));
    // "default": the browser saves where its own settings say; the driver only hears of it.
    await this.root.send('Browser.setDownloadBehavior', {behavior: 'default', eventsEnabled: true});
    await this.findSilent();
    this.transport.admits = (info) => {
      if (info.browserContextId && !ours(info)) return 'never';
      return this.silent.has(info.targetId) ? 'later' : 'now';
    };
    // With a folder for artifacts playwright makes none; nothing is written there.
    const options = {isLocal: true, noDefaults: true, timeout: kConnectMs, artifactsDir: os.tmpdir()};
    const browser = await chromium.connectOverCDP(this.transport, options);
    [this.context] = browser.contexts();
    // Now, not before: only the contexts that there are hear of an engine.
    await selectors.register('node', engine.node, {contentScript: true});
    await selectors.register('kind', engine.kind, {contentScript: true});
    this.context.on('dialog', (dialog) => this.dialogs.opened(dialog));
    this.context.on('page', (page) => this.meet(page).catch(() => {}));
    for (const page of this.context.pages()) await this.meet(page);
    this.news = [];
  }

  // A renderer that runs an endless loop, or that shows a dialog, answers nothing, and playwright would wait for it before it
  // connects. The loop is ended; of a tab that still does not answer playwright hears when it does.
  async findSilent() {
    const ids = [...this.targets.keys()];
    for (let at = 0; at < ids.length; at += kTogether) await Promise.all(ids.slice(at, at + kTogether).map((id) => this.probe(id)));
  }

  async probe(targetId) {
    const session = await this.attach(targetId).catch(() => null);
    if (session === null) return;
    const answered = session.send('Runtime.evaluate', {expression: '0'}).then(() => true, () => true);
    let answers = await soon(answered, kAnswersMs, false);
    if (!answers) {
      session.send('Runtime.terminateExecution').catch(() => {});
      answers = await soon(answered, kAnswersMs, false);
    }
    if (answers) return this.detach(session);
    this.silent.add(targetId);
    answered.then(() => {
      this.silent.delete(targetId);
      this.detach(session);
      this.transport.release(targetId);
    });
  }

  attach(targetId) { return this.transport.session('Target.attachToTarget', {targetId, flatten: true}, this.root.id); }

  detach(session) {
    session.forget();
    this.root.send('Target.detachFromTarget', {sessionId: session.id}).catch(() => {});
  }

  // Takes a page of playwright's into the list of tabs.
  async meet(page) {
    const asked = await this.context.newCDPSession(page);
    const {targetInfo} = await asked.send('Target.getTargetInfo');
    asked.detach().catch(() => {});
    const tab = new Tab(this, page, targetInfo.targetId, await this.attach(targetInfo.targetId));
    this.tabs.set(tab.targetId, tab);
    if (!this.targets.has(tab.targetId)) this.targets.set(tab.targetId, targetInfo);
    this.silent.delete(tab.targetId);
    page.on('crash', () => { tab.crashed = true; });
    page.on('close', () => this.gone(tab.targetId));
    for (const listener of this.pageListeners) listener(page);
    this.news.push({opened: tab});
    return tab;
  }

  // `listener` is called for each page that there is and that will be.
  eachPage(listener) {
    this.pageListeners.push(listener);
    for (const tab of this.tabs.values()) listener(tab.page);
  }

  gone(targetId) {
    const info = this.targets.get(targetId);
    this.targets.delete(targetId);
    this.silent.delete(targetId);
    const tab = this.tabs.get(targetId);
    if (info || tab) this.news.push({closed: url(info?.url ?? '')});  // also of one that closed before playwright told of it
    if (tab === undefined) return;
    this.tabs.delete(targetId);
    tab.closed = true;
    if (this.current === tab) this.current = null;
    this.dialogs.forget(tab.page);
  }

  // Chromium tells of a new address by itself, but not of a new title.
  async refresh(op) {
    const {targetInfos} = await op.within(this.root.send('Target.getTargets', {filter: [{type: 'page'}, {exclude: true}]}));
    for (const info of targetInfos) if (this.targets.has(info.targetId)) this.targets.set(info.targetId, info);
  }

  list() { return [...this.tabs.values()]; }

  tabOf(page) { return this.list().find((tab) => tab.page === page); }

  indexOf(tab) { return this.list().indexOf(tab); }

  describe(tab) {
    const info = this.targets.get(tab.targetId);
    return {
      index: this.indexOf(tab), url: url(info?.url ?? tab.page.url()), title: clip(info?.title ?? '', limits.title), active: tab === this.current,
    };
  }

  // A page that does not answer, because its code never ends, has the title that the browser process knows.
  async title(op) {
    const known = this.targets.get(op.tab.targetId)?.title ?? '';
    return clip(await soon(op.within(op.tab.call(op.tab.targetId, 'title')).catch(() => known), kTitleMs, known), limits.title);
  }

  // The visible tab, brought to the front: in a hidden one no frame is drawn, and playwright waits for frames.
  async bringCurrent(op) {
    await this.settle(op);
    const before = this.current;
    await this.dialogs.closeOf(before, op);
    if (before === null || before.crashed || !await before.visible()) {
      const others = this.list().filter((tab) => tab !== before && !tab.crashed);
      this.current = await this.firstVisible(others) ?? before ?? others.at(-1) ?? this.list().at(-1) ?? null;
    }
    if (this.current === null) this.current = await this.open(op);
    const tab = this.current;
    if (tab !== before) {
      if (before !== null) op.note(`the current tab is now ${this.told(tab)}`);
      await this.dialogs.closeOf(tab, op);
    }
    if (!tab.shown && !tab.crashed) await op.within(tab.page.bringToFront());
    op.tab = tab;
    if (tab.crashed && op.name !== 'navigate' && op.name !== 'reload') throw new Failure('the page has crashed: navigate, reload, or close its tab');
    return tab;
  }

  // Which tab the person sees, without a change to it: for operations that need no page.
  async look() {
    if (this.current !== null && await this.current.visible()) return;
    this.current = await this.firstVisible(this.list()) ?? this.current ?? this.list().at(-1) ?? null;
  }

  async firstVisible(tabs) {
    for (let at = tabs.length; at > 0; at -= kTogether) {
      const some = tabs.slice(Math.max(at - kTogether, 0), at);
      const seen = await Promise.all(some.map((tab) => tab.visible()));
      const found = some.findLast((tab, i) => seen[i]);
      if (found) return found;
    }
    return null;
  }

  // A blank tab in the foreground. It is also how the last tab is kept.
  async open(op) {
    const page = await op.within(this.context.newPage());
    for (;;) {
      const tab = this.tabOf(page);
      if (tab) return tab;
      await op.pause(2);
    }
  }

  told(tab) {
    const {index, url: address} = this.describe(tab);
    return `${index}, ${quote(address, 200)}`;
  }

  // Tabs that the browser has made and playwright has not told of yet: a click that opens one ends sooner than it.
  async settle(op) {
    const waits = () => [...this.targets.keys()].some((id) => !this.tabs.has(id) && !this.silent.has(id) && !this.targets.get(id).subtype);
    for (const end = Date.now() + Math.min(kOpensMs, op.left()); waits() && Date.now() < end;) await op.pause(5);
    // What playwright does not tell of by now does not answer; nobody waits for it again.
    if (waits()) [...this.targets.keys()].filter((id) => !this.tabs.has(id)).forEach((id) => this.silent.add(id));
  }

  // What became of tabs since the last answer, for `hint`. `expected`: the operation was about tabs, and its answer says it.
  async tellNews(op, expected) {
    if (!expected) await this.settle(op).catch(() => {});
    const news = this.news.splice(0);
    if (expected) return;
    const opened = news.filter((one) => one.opened && !one.opened.closed);
    for (const {opened: tab} of opened) op.note(`a new tab was opened: ${this.told(tab)}`);
    for (const {closed} of news.filter((one) => one.closed !== undefined)) op.note(`a tab was closed: ${quote(closed, 200)}`);
    if (opened.length === 0 && this.current !== null) return;
    const now = await this.firstVisible(this.list());
    if (now === null || now === this.current) return;
    this.current = now;
    op.note(`the current tab is now ${this.told(now)}`);
  }

  // Closes by the browser process: a tab whose code never ends closes, too.
  async closeTab(tab, op) {
    await op.within(this.root.send('Target.closeTarget', {targetId: tab.targetId}));
    while (this.tabs.has(tab.targetId)) await op.pause(5);
  }

  downloadBegins({guid, url: from, suggestedFilename}) {
    if (this.downloads.size >= 100) this.downloads.delete(this.downloads.keys().next().value);
    this.downloads.set(guid, {guid, url: url(from), name: clip(suggestedFilename, 1024), state: 'inProgress', bytes: 0, path: '', taken: false});
  }

  downloadGoesOn({guid, state, receivedBytes, filePath}) {
    const download = this.downloads.get(guid);
    if (download) Object.assign(download, {state, bytes: receivedBytes, path: clip(filePath ?? download.path, 4096)});
  }

  needTab(index) {
    const tab = this.list()[index];
    if (tab === undefined) throw new Failure(`there is no tab ${index}: ${this.tabs.size} ${this.tabs.size === 1 ? 'is' : 'are'} open`);
    return tab;
  }
}

module.exports = {Browser};
