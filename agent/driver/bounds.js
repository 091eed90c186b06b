// The limits of what leaves the driver, and the functions that keep to them. Pages choose every text that passes here.
'use strict';

const KiB = 1024;
const MiB = 1024 * KiB;

const limits = {
  url: 8 * KiB,
  title: 1 * KiB,
  consoleText: 8 * KiB,
  message: 2 * KiB,
  hint: 4 * KiB,
  hintText: 512,
  evaluate: 8 * MiB,
  text: 32 * MiB,
  file: 64 * MiB,
  headers: 4 * KiB,
  consoleEntries: 1000,
  requests: 2000,
  elements: 2000,
  hits: 200,
  tabs: 500,
  frames: 50,
  frameDepth: 6,
  side: 16384,
};

// At most so many bytes of UTF-8, cut between two characters. The text is a copy: a slice would keep the whole text of a page alive.
// Halves of surrogate pairs, which no strict reader of JSON takes, become U+FFFD.
function clip(value, bytes) {
  const text = typeof value === 'string' ? value : '';
  const whole = Buffer.from(text.length > bytes ? text.slice(0, bytes + 1) : text, 'utf8');
  if (whole.length <= bytes) return whole.toString('utf8');
  let end = Math.max(bytes - 3, 0);
  while (end > 0 && (whole[end] & 0xc0) === 0x80) --end;
  return `${whole.toString('utf8', 0, end)}…`;
}

const url = (text) => clip(text, limits.url);

// Foreign text in a message of ours.
// eslint-disable-next-line no-control-regex
const quote = (text, bytes = limits.hintText) => `'${clip(text, bytes).replace(/[\u0000-\u001f\u007f]/g, ' ')}'`;

// The first line of an error, without the colours that playwright adds.
function firstLine(error) {
  const text = String(error?.message ?? error ?? '');
  // eslint-disable-next-line no-control-regex
  const line = text.slice(0, 64 * KiB).replace(/\u001b\[[0-9;]*m/g, '').split('\n').find((part) => part.trim() !== '') ?? 'no reason is known';
  return clip(line.trim(), limits.message);
}

// The same value with well-formed strings, of at most so many levels.
function wellFormed(value, levels = 200) {
  if (typeof value === 'string') return Buffer.from(value, 'utf8').toString('utf8');
  if (value === null || typeof value !== 'object') return value;
  if (levels === 0) throw new RangeError('the value is nested too deeply');
  if (Array.isArray(value)) return value.map((item) => wellFormed(item, levels - 1));
  const out = Object.create(null);
  for (const key of Object.keys(value)) out[wellFormed(key)] = wellFormed(value[key], levels - 1);
  return out;
}

class Ring {
  constructor(most) {
    this.most = most;
    this.items = [];
  }

  add(item) {
    this.items.push(item);
    // Cut in steps: shift() on each of a flood of messages moves all of them.
    if (this.items.length >= this.most * 1.25) this.items = this.items.slice(-this.most);
  }

  list() { return this.items.slice(-this.most); }

  clear() { this.items = []; }
}

module.exports = {KiB, MiB, limits, clip, url, quote, firstLine, wellFormed, Ring};
