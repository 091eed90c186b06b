// Frames between the agent and the driver over stdin and stdout (agent/frames/frame.h): u32 little-endian length of the head, the head
// (a JSON object), then as many raw bytes as its member "bytes" says.
'use strict';

const {MiB} = require('./bounds');

const kHeadBytes = 1 * MiB;
const kBodyBytes = 64 * MiB;

class FrameReader {
  // frame(head, body) is called for each frame. take() throws when the bytes are no frame; nothing can be read after that.
  constructor(frame) {
    this.frame = frame;
    this.parts = [];
    this.have = 0;
    this.head = null;
    this.want = 4;
    this.state = 'length';
  }

  take(bytes) {
    this.parts.push(bytes);
    this.have += bytes.length;
    while (this.have >= this.want) this.step(this.cut(this.want));
  }

  cut(size) {
    const all = this.parts.length === 1 ? this.parts[0] : Buffer.concat(this.parts);
    this.parts = all.length > size ? [all.subarray(size)] : [];
    this.have = all.length - size;
    return all.subarray(0, size);
  }

  step(bytes) {
    if (this.state === 'length') {
      const size = bytes.readUInt32LE(0);
      if (size < 2 || size > kHeadBytes) throw new Error(`a head of ${size} bytes`);
      this.state = 'head';
      this.want = size;
    } else if (this.state === 'head') {
      const head = JSON.parse(bytes.toString('utf8'));
      if (head === null || typeof head !== 'object' || Array.isArray(head)) throw new Error('a head that is not an object');
      const size = head.bytes ?? 0;
      if (!Number.isInteger(size) || size < 0 || size > kBodyBytes) throw new Error("a head whose 'bytes' is not a size");
      this.head = head;
      this.state = 'body';
      this.want = size;
    } else {
      const head = this.head;
      this.head = null;
      this.state = 'length';
      this.want = 4;
      this.frame(head, bytes);
    }
  }
}

function encode(head, body) {
  const text = Buffer.from(JSON.stringify(body.length > 0 ? {...head, bytes: body.length} : head), 'utf8');
  if (text.length > kHeadBytes) throw new Error(`a head of ${text.length} bytes`);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  return body.length > 0 ? [size, text, body] : [size, text];
}

module.exports = {FrameReader, encode};
