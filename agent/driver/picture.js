// The size of a PNG or JPEG picture, from its head (PNG: ISO/IEC 15948, 11.2.2; JPEG: ITU T.81, B.2.2). 0 x 0: it is neither.
'use strict';

function size(bytes) {
  if (bytes.length >= 24 && bytes.readUInt32BE(0) === 0x89504e47) return {width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20)};
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return {width: 0, height: 0};
  for (let at = 2; at + 9 <= bytes.length;) {
    const mark = bytes.readUInt16BE(at);
    // Start of frame: 0xffc0 to 0xffcf, but for tables (c4, cc) and an extension (c8).
    if ((mark & 0xfff0) === 0xffc0 && ![0xffc4, 0xffc8, 0xffcc].includes(mark)) {
      return {width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5)};
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return {width: 0, height: 0};
}

module.exports = {size};
