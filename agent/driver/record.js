// A film of a tab: frames of the browser's screencast, which come when the page changes, go to ffmpeg at an even pace. The film is held
// in memory, fragmented so that it plays even when its end is missing, and ends at its largest size.
'use strict';

const {spawn} = require('child_process');

const {clip, limits} = require('./bounds');
const {Failure, invalid} = require('./failure');
const {size} = require('./picture');
const {soon} = require('./operation');

const kMostSeconds = 600;
const kWaiting = 8 * 1024 * 1024;  // bytes that ffmpeg has not taken: later frames are left out

class Recording {
  constructor(tab, program, fps, quality) {
    Object.assign(this, {tab, program, fps, quality});
    this.status = 'recording';
    this.frames = 0;
    this.picture = null;
    this.parts = [];
    this.bytes = 0;
    this.full = false;
    this.words = '';
    this.seconds = 0;
    this.since = performance.now();
    this.child = null;
    this.done = null;
  }

  async start(op) {
    const {session, page} = this.tab;
    // The screencast sends its first frame at the first change of the page.
    this.picture = await op.within(page.screenshot(op.options({type: 'jpeg', quality: this.quality})));
    const {width, height} = size(this.picture);
    this.run(width, height);
    session.on('Page.screencastFrame', ({data, sessionId}) => {
      session.send('Page.screencastFrameAck', {sessionId}).catch(() => {});
      if (this.status === 'recording') this.picture = Buffer.from(data, 'base64');
    });
    await op.within(session.send('Page.enable'));
    const asked = {format: 'jpeg', quality: this.quality, maxWidth: width, maxHeight: height, everyNthFrame: 1};
    await op.within(session.send('Page.startScreencast', asked));
    this.timer = setInterval(() => this.tick(), 1000 / this.fps);
  }

  run(width, height) {
    const even = (side) => Math.max(side - side % 2, 2);
    const fit = `scale=${even(width)}:${even(height)}:force_original_aspect_ratio=decrease,pad=${even(width)}:${even(height)}:-1:-1,format=yuv420p`;
    this.child = spawn(this.program, [
      '-hide_banner', '-loglevel', 'error', '-f', 'image2pipe', '-framerate', String(this.fps), '-c:v', 'mjpeg', '-i', 'pipe:0', '-vf', fit,
      '-c:v', 'libx264', '-preset', 'veryfast', '-crf', String(Math.round(40 - this.quality * 0.2)), '-threads', '1',
      '-movflags', 'frag_keyframe+empty_moov', '-f', 'mp4', 'pipe:1',
    ], {stdio: 'pipe'});
    this.done = new Promise((resolve) => {
      this.child.on('error', (error) => {
        this.words = error.code === 'ENOENT' ? 'ffmpeg is not installed' : error.message;
        resolve();
      });
      this.child.on('close', resolve);
    });
    this.child.stdin.on('error', () => {});
    this.child.stdout.on('data', (part) => {
      this.bytes += part.length;
      if (this.bytes > limits.file) this.full = true;
      else this.parts.push(part);
    });
    this.child.stderr.on('data', (part) => { this.words = clip(this.words + part.toString('utf8'), 1024); });
  }

  elapsed() { return this.seconds + (this.status === 'recording' ? (performance.now() - this.since) / 1000 : 0); }

  tick() {
    if (this.status !== 'recording') return;
    if (this.full || this.tab.closed || this.elapsed() > kMostSeconds || this.child.exitCode !== null) return this.halt('stopped');
    // As many frames as the time since the start has: a late tick is made up for.
    const due = Math.min(Math.floor(this.elapsed() * this.fps) + 1 - this.frames, this.fps);
    for (let i = 0; i < due && this.child.stdin.writableLength < kWaiting; ++i) this.add();
  }

  add() {
    ++this.frames;
    this.child.stdin.write(this.picture);
  }

  halt(status) {
    this.seconds = this.elapsed();
    this.status = status;
    if (status === 'stopped') clearInterval(this.timer);
  }

  resume() {
    this.since = performance.now();
    this.status = 'recording';
  }

  async stop(op) {
    if (this.status === 'recording' && this.frames === 0) this.add();
    this.halt('stopped');
    this.tab.session.send('Page.stopScreencast').catch(() => {});
    this.child.stdin.end();
    await op.within(soon(this.done, op.left()));
    this.kill();
    if (this.bytes === 0) throw new Failure(`the film could not be made: ${this.words || 'ffmpeg ended early'}`);
    if (this.full) op.note(`the film has ended at its largest size, ${limits.file} bytes`);
    return Buffer.concat(this.parts);
  }

  kill() {
    clearInterval(this.timer);
    if (this.child !== null && this.child.exitCode === null) this.child.kill('SIGKILL');
  }

  told() { return {status: this.status, duration: Math.round(this.elapsed() * 10) / 10, frames: this.frames}; }
}

class Recorder {
  constructor(program) {
    this.program = program;
    this.current = null;
  }

  kill() { this.current?.kill(); }

  need() {
    if (this.current === null) throw new Failure('nothing is being recorded');
    return this.current;
  }

  async act(op, values, browser) {
    const action = values.action ?? 'once';
    const actions = {
      start: () => this.start(op, values, browser),
      once: () => this.once(op, values, browser),
      pause: () => this.need().halt('paused'),
      resume: () => this.need().resume(),
      status: () => {},
      stop: () => this.stop(op),
    };
    if (!Object.hasOwn(actions, action)) throw invalid(`action must be one of ${Object.keys(actions).join(', ')}`);
    return await actions[action]() ?? {data: this.current?.told() ?? {status: 'idle', duration: 0, frames: 0}};
  }

  async start(op, values, browser) {
    if (this.current !== null) throw new Failure('a recording is going on: stop it first');
    const fps = values.fps ?? 15, quality = values.quality ?? 80;
    if (fps < 1 || fps > 30) throw invalid('fps must be from 1 to 30');
    if (quality < 0 || quality > 100) throw invalid('quality must be from 0 to 100');
    const recording = this.current = new Recording(await browser.bringCurrent(op), this.program, fps, quality);
    try {
      await recording.start(op);
    } catch (error) {
      recording.kill();
      this.current = null;
      throw error;
    }
  }

  async once(op, values, browser) {
    const seconds = values.duration ?? 10;
    if (!(seconds > 0) || seconds > kMostSeconds) throw invalid(`duration must be more than 0 and at most ${kMostSeconds} seconds`);
    await this.start(op, values, browser);
    try {
      await op.pause(seconds * 1000);
    } catch (error) {
      this.kill();
      this.current = null;
      throw error;
    }
    return this.stop(op);
  }

  async stop(op) {
    const recording = this.need();
    this.current = null;
    const file = await recording.stop(op);
    return {data: recording.told(), file};
  }
}

module.exports = {Recorder};
