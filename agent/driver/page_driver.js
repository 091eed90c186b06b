// The page driver: carries out page operations in the workspace's Chromium, inside the browser session. Requests come over stdin as
// frames, answers leave over stdout (frames.js); README.md has the protocol. It has only the rights of its session.
//
//   node page_driver.js SOCKET [FFMPEG]
//   node page_driver.js --describe-protocol    prints the DevTools protocol, as /json/protocol has it
//
// SOCKET: a UNIX socket on which messages of the DevTools protocol go, each JSON and a NUL. FFMPEG: the program for recordings.
// Exit status: 0 at the end of stdin, 1 a broken frame, 3 the socket cannot be had, 4 Chromium does not let playwright connect,
// 5 an error of the driver's own, 6 the socket has ended.
'use strict';

const {Browser} = require('./browser');
const {firstLine} = require('./bounds');
const {FrameReader, encode} = require('./frames');
const {Runner} = require('./runner');
const {Transport} = require('./transport');

function leave(status, why) {
  if (why) process.stderr.write(`page driver: ${why}\n`);
  process.exit(status);
}

function describeProtocol() {
  const [browser, js] = ['browser', 'js'].map((part) => require(`devtools-protocol/json/${part}_protocol.json`));
  return {version: browser.version, domains: [...browser.domains, ...js.domains]};
}

async function main() {
  const [path, ffmpeg = 'ffmpeg'] = process.argv.slice(2);
  if (path === '--describe-protocol') {
    process.stdout.write(JSON.stringify(describeProtocol()));
    return;
  }
  if (!path) leave(64, 'usage: page_driver.js SOCKET [FFMPEG]');
  // Only frames may come out of stdout, whatever a library prints.
  console.log = console.info = console.debug = console.error;
  // A call of playwright's for a page that has gone ends like this; the page must not end the driver with it.
  process.on('unhandledRejection', (error) => process.stderr.write(`page driver: ${firstLine(error)}\n`));

  process.on('uncaughtException', (error) => leave(5, firstLine(error)));

  const transport = await Transport.connect(path).catch((error) => leave(3, `the browser's socket cannot be had: ${error.code ?? firstLine(error)}`));
  transport.ended = () => leave(6, "the browser's socket has ended");
  const browser = new Browser(transport);
  const send = (head, body) => {
    process.stdout.cork();  // one writev for the parts: the agent wakes once
    for (const part of encode(head, body)) process.stdout.write(part);
    process.stdout.uncork();
  };
  const runner = new Runner(browser, send, ffmpeg);
  process.on('exit', () => runner.recorder.kill());

  const reader = new FrameReader((head, body) => runner.take(head, body));
  process.stdin.on('data', (bytes) => {
    try {
      reader.take(bytes);
    } catch (error) {
      leave(1, `a broken frame: ${firstLine(error)}`);
    }
  });
  process.stdin.on('end', () => leave(0));
  process.stdout.on('error', () => leave(0));
  await runner.connect().catch((error) => leave(4, `Chromium does not let playwright connect: ${firstLine(error)}`));
}

main();
