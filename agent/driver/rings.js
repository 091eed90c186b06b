// What pages said and asked for: the last console messages and requests, without bodies.
'use strict';

const {Ring, clip, limits, url} = require('./bounds');

class Console {
  constructor() { this.ring = new Ring(limits.consoleEntries); }

  watch(context) {
    context.on('console', (message) => {
      const {url: from, line, column} = message.location();
      this.add(message.type(), message.text(), {url: url(from), line, column});
    });
    context.on('weberror', (problem) => {
      const error = problem.error();
      this.add('pageerror', String(error?.stack || error?.message || error), {url: url(problem.page()?.url() ?? ''), line: 0, column: 0});
    });
  }

  add(type, text, location) {
    this.ring.add({type: clip(type, 64), text: clip(text, limits.consoleText), location, timestamp: new Date().toISOString()});
  }

  dropped(method, size) {
    if (/^(Runtime|Log)\./.test(method)) this.add('dropped', `a message of ${size} bytes is left out`, {url: '', line: 0, column: 0});
  }

  list(clear = false) {
    const all = this.ring.list();
    if (clear) this.ring.clear();
    return all;
  }
}

class Requests {
  constructor() {
    this.ring = new Ring(limits.requests);
    this.entries = new WeakMap();
  }

  watch(context) {
    context.on('request', (request) => this.begun(request));
    context.on('response', (response) => {
      const entry = this.entries.get(response.request());
      if (!entry) return;
      Object.assign(entry.shown, {status: response.status(), status_text: clip(response.statusText(), 256)});
      entry.response_headers = bounded(response.headers());
    });
    context.on('requestfinished', (request) => this.ended(request, null));
    context.on('requestfailed', (request) => this.ended(request, request.failure()?.errorText ?? 'failed'));
  }

  begun(request) {
    const entry = {
      shown: {
        url: url(request.url()), method: clip(request.method(), 64), type: clip(request.resourceType(), 64), status: null, status_text: null,
        started: new Date().toISOString(), duration_ms: null, request_bytes: null, response_bytes: null, error: null,
      },
      began: performance.now(),
      request_headers: bounded(request.headers()),
      response_headers: [],
    };
    this.entries.set(request, entry);
    this.ring.add(entry);
  }

  ended(request, error) {
    const entry = this.entries.get(request);
    if (!entry) return;
    const timing = request.timing();
    const took = timing.responseEnd >= 0 ? timing.responseEnd : performance.now() - entry.began;
    Object.assign(entry.shown, {duration_ms: Math.round(took * 10) / 10, error: error === null ? null : clip(error, 256)});
    if (error !== null) return;
    request.sizes().then((sizes) => {
      entry.shown.request_bytes = sizes.requestHeadersSize + sizes.requestBodySize;
      entry.shown.response_bytes = sizes.responseHeadersSize + sizes.responseBodySize;
    }, () => {});
  }

  list(filter, limit) {
    const shown = this.ring.list().map((entry) => entry.shown);
    const found = filter ? shown.filter((one) => one.url.includes(filter)) : shown;
    return limit > 0 ? found.slice(-limit) : [];
  }

  // HAR 1.2; -1 is what the format has for sizes that are not known.
  har(version) {
    const entries = this.ring.list().map(({shown, request_headers: asked, response_headers: answered}) => ({
      startedDateTime: shown.started,
      time: shown.duration_ms ?? 0,
      request: {
        method: shown.method, url: shown.url, httpVersion: 'unknown', cookies: [], headers: asked, queryString: query(shown.url),
        headersSize: -1, bodySize: -1,
      },
      response: {
        status: shown.status ?? 0, statusText: shown.status_text ?? '', httpVersion: 'unknown', cookies: [], headers: answered,
        content: {size: shown.response_bytes ?? -1, mimeType: answered.find(({name}) => name === 'content-type')?.value ?? ''},
        redirectURL: answered.find(({name}) => name === 'location')?.value ?? '', headersSize: -1, bodySize: shown.response_bytes ?? -1,
        ...(shown.error ? {_error: shown.error} : {}),
      },
      cache: {},
      timings: {send: -1, wait: shown.duration_ms ?? -1, receive: -1},
      _resourceType: shown.type,
    }));
    return {log: {version: '1.2', creator: {name: 'Caisson', version}, entries}};
  }
}

// Headers as HAR has them, in all no larger than the limit.
function bounded(headers) {
  const out = [];
  let left = limits.headers;
  for (const [name, value] of Object.entries(headers)) {
    const one = {name: clip(name, 256), value: clip(value, 1024)};
    left -= one.name.length + one.value.length;
    if (left < 0) break;
    out.push(one);
  }
  return out;
}

function query(address) {
  try {
    return [...new URL(address).searchParams].slice(0, 200).map(([name, value]) => ({name, value}));
  } catch {
    return [];
  }
}

module.exports = {Console, Requests};
