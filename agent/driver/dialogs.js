// Dialogs of pages. Those that open during an operation, or that are open when one needs their tab, are closed: alert and beforeunload
// are accepted, confirm and prompt dismissed, and the operation's hint says so. At other times they are the person's.
'use strict';

const {quote} = require('./bounds');

class Dialogs {
  constructor(browser) {
    this.browser = browser;
    this.operation = null;
    this.open = new Map();  // page → its dialog that nobody has closed
    this.closing = Promise.resolve();
    this.draining = 0;
  }

  opened(dialog) {
    this.open.set(dialog.page(), dialog);
    if (this.operation !== null) this.closing = Promise.all([this.closing, this.close(dialog, this.operation, '')]);
    else if (this.draining > 0) this.drop(dialog);
  }

  // While code that an operation left running is ended, its dialogs are closed: it would wait for them for ever.
  drain(tab, ended) {
    ++this.draining;
    const dialog = this.open.get(tab.page);
    if (dialog) this.drop(dialog);
    return ended.finally(() => { --this.draining; });
  }

  drop(dialog) {
    this.open.delete(dialog.page());
    dialog.dismiss().catch(() => {});
  }

  forget(page) { this.open.delete(page); }

  async closeOf(tab, op) {
    const dialog = tab === null ? undefined : this.open.get(tab.page);
    if (dialog) await this.close(dialog, op, 'was open and ');
  }

  // Never throws: the person, or the end of the page, may have closed it before.
  async close(dialog, op, before) {
    const page = dialog.page();
    if (this.open.get(page) === dialog) this.open.delete(page);
    const accepts = dialog.type() === 'alert' || dialog.type() === 'beforeunload';
    const text = dialog.message();
    try {
      await op.within(accepts ? dialog.accept() : dialog.dismiss());
      op.note(`${dialog.type()}${text ? ` ${quote(text)}` : ''} ${before}was ${accepts ? 'accepted' : 'dismissed'}`);
    } catch {
      // Closed already.
    }
  }
}

module.exports = {Dialogs};
