// Headers and routes. They hold as long as the driver runs.
'use strict';

const {quote} = require('./bounds');
const {Failure, invalid} = require('./failure');

const kToken = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;  // RFC 9110, 5.6.2
const kMost = 200;

class Network {
  constructor(browser) {
    this.browser = browser;
    this.routes = new Map();  // pattern → handler
    this.scoped = new Map();  // origin → {match, handler}
    this.extra = 0;
  }

  keeps() { return {routes: this.routes.size, scoped_headers: this.scoped.size, headers: this.extra}; }

  async headers(op, {headers}) {
    checkHeaders(headers);
    await op.within(this.browser.context.setExtraHTTPHeaders(headers));
    this.extra = Object.keys(headers).length;
    return {data: {headers: this.extra}};
  }

  // Without headers: those of the origin are taken back.
  async scopedHeaders(op, values) {
    let origin;
    try {
      ({origin} = new URL(values.origin));
    } catch {
      origin = 'null';
    }
    if (origin === 'null') throw invalid('origin must be like https://example.org');
    checkHeaders(values.headers);
    const before = this.scoped.get(origin);
    if (before === undefined && this.scoped.size >= kMost) throw new Failure(`at most ${kMost} origins can have headers`);
    if (before) await op.within(this.browser.context.unroute(before.match, before.handler));
    this.scoped.delete(origin);
    const count = Object.keys(values.headers).length;
    if (count > 0) {
      const own = Object.fromEntries(Object.entries(values.headers).map(([name, value]) => [name.toLowerCase(), value]));
      const match = (address) => address.origin === origin;
      const handler = (route) => route.fallback({headers: {...route.request().headers(), ...own}}).catch(() => {});
      await op.within(this.browser.context.route(match, handler));
      this.scoped.set(origin, {match, handler});
    }
    return {data: {origin, headers: count}};
  }

  async addRoute(op, values) {
    const {url_pattern: pattern, response, abort = false} = values;
    if (pattern === '' || pattern.length > 8192) throw invalid('url_pattern must have 1 to 8192 characters');
    if (!abort && response === undefined) throw invalid('response or abort must be given');
    const answer = abort ? null : mocked(response);
    if (!this.routes.has(pattern) && this.routes.size >= kMost) throw new Failure(`at most ${kMost} routes can be there`);
    await this.dropRoute(op, pattern);
    const handler = (route) => (abort ? route.abort('blockedbyclient') : route.fulfill(answer)).catch(() => {});
    await op.within(this.browser.context.route(pattern, handler));
    this.routes.set(pattern, handler);
    return {data: {url_pattern: pattern}};
  }

  async removeRoute(op, {url_pattern: pattern}) {
    if (!this.routes.has(pattern)) throw new Failure(`there is no route for ${quote(pattern)}`);
    await this.dropRoute(op, pattern);
    return {data: {url_pattern: pattern}};
  }

  async dropRoute(op, pattern) {
    const handler = this.routes.get(pattern);
    if (handler === undefined) return;
    this.routes.delete(pattern);
    await op.within(this.browser.context.unroute(pattern, handler));
  }
}

function checkHeaders(headers) {
  const all = Object.entries(headers);
  if (all.length > 100) throw invalid('at most 100 headers can be given');
  for (const [name, value] of all) {
    if (!kToken.test(name)) throw invalid(`${quote(name, 100)} is no name of a header`);
    if (typeof value !== 'string' || value.length > 16384 || /[\r\n\0]/.test(value)) {
      throw invalid(`the header ${quote(name, 100)} must have a text without line ends`);
    }
  }
}

function mocked({status = 200, headers = {}, body = '', content_type: contentType = 'text/plain'}) {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw invalid('status must be from 200 to 599');
  if (typeof body !== 'string' || typeof contentType !== 'string' || headers === null || typeof headers !== 'object') {
    throw invalid('response must have a body, headers and a content_type');
  }
  checkHeaders(headers);
  return {status, headers, body, contentType};
}

module.exports = {Network};
