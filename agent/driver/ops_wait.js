// Waiting. What does not come within the operation's time is a failure.
'use strict';

const {clip, firstLine, limits, url} = require('./bounds');
const {Failure, invalid} = require('./failure');
const {run} = require('./page_code');

const kSelectorStates = ['attached', 'detached', 'visible', 'hidden'];
const kLoadStates = ['load', 'domcontentloaded', 'networkidle'];

const need = (values, name) => {
  if (values[name] === undefined) throw invalid(`${name} is missing`);
  return values[name];
};
const oneOf = (value, known) => {
  if (!known.includes(value)) throw invalid(`state must be one of ${known.join(', ')}`);
  return value;
};

const waits = {
  async selector(op, values) {
    const state = oneOf(values.state ?? 'visible', kSelectorStates);
    await op.within(op.tab.page.locator(need(values, 'selector')).first().waitFor(op.options({state})));
    return {selector: clip(values.selector, 1024), state};
  },

  async load(op, values) {
    const state = oneOf(values.state ?? 'load', kLoadStates);
    await op.within(op.tab.page.waitForLoadState(state, op.options()));
    return {state};
  },

  async network_idle(op) {
    await op.within(op.tab.page.waitForLoadState('networkidle', op.options()));
    return {};
  },

  async url(op, values) {
    await op.within(op.tab.page.waitForURL(need(values, 'url'), op.options({waitUntil: 'commit'})));
    return {url: url(op.tab.page.url())};
  },

  // In the page's own world. If the document is replaced meanwhile, the next one is asked.
  async function(op, values) {
    const every = Math.min(Math.max(values.polling ?? 100, 20), 10_000);
    const expression = need(values, 'expression');
    for (;;) {
      if (await holds(op, expression)) return {};
      await op.pause(every);
    }
  },

  async response(op, values) {
    const response = await op.within(op.tab.page.waitForResponse(need(values, 'url_pattern'), op.options()));
    return {url: url(response.url()), method: clip(response.request().method(), 64), status: response.status()};
  },

  async request(op, values) {
    const request = await op.within(op.tab.page.waitForRequest(need(values, 'url_pattern'), op.options()));
    return {url: url(request.url()), method: clip(request.method(), 64)};
  },

  // The oldest download that no wait has answered with; it may have ended before. The file is where the browser saved it.
  async download(op, values, browser) {
    for (;;) {
      const download = [...browser.downloads.values()].find((one) => !one.taken && one.state !== 'inProgress');
      if (download) {
        download.taken = true;
        if (download.state !== 'completed') throw new Failure('the download was cancelled');
        return {url: download.url, path: download.path, suggested_filename: download.name, size: download.bytes};
      }
      await op.pause(20);
    }
  },

  async timeout(op, values) {
    await op.pause(Math.min(values.duration_ms ?? Infinity, op.left()));
    return {};
  },
};

async function holds(op, expression) {
  try {
    const {result, exceptionDetails} = await run((method, more) => op.within(op.tab.session.send(method, more)), 'wait', expression);
    if (exceptionDetails) throw new Failure(firstLine(exceptionDetails.exception?.description ?? exceptionDetails.text));
    if (result.unserializableValue !== undefined) return !['NaN', '-0', '0n'].includes(result.unserializableValue);
    return result.objectId !== undefined || Boolean(result.value);
  } catch (error) {
    if (/context was destroyed|Cannot find context|navigated or closed|Promise was collected/.test(error.message)) return false;
    throw error;
  } finally {
    op.tab.session.send('Runtime.releaseObjectGroup', {objectGroup: 'wait'}).catch(() => {});
  }
}

async function wait(op, values, browser) {
  if (!Object.hasOwn(waits, values.type)) throw invalid(`type must be one of ${Object.keys(waits).join(', ')}`);
  if (values.expression !== undefined && values.expression.length > limits.evaluate) throw invalid('the expression is too long');
  return {data: {type: values.type, ...await waits[values.type](op, values, browser)}};
}

module.exports = {wait};
