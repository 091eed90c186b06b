// Connection: the session's WebSocket, made again when it is cut, at the offset of the last byte that arrived.

const kFirstPause = 250, kLongestPause = 10_000;  // ms between two attempts
const kSilence = 75_000;                          // the server pings every 30 s
const kAckBytes = 32 * 1024;
const kInputCharacters = 64 * 1024;

class Connection {
  // on: ready(fields), output(text, done), gap(from, to), size(fields), problem(text), state(name, text)
  constructor(session, readonly, start, on) {
    Object.assign(this, {session, readonly, start, on, offset: null, acknowledged: 0, attempts: 0, socket: null, timer: 0});
    setInterval(() => this.socket && performance.now() - this.heard > kSilence && this.socket.close(), 5000);
    for (const event of ['online', 'focus']) addEventListener(event, () => this.timer && this.open());
  }

  async open() {
    clearTimeout(this.timer);
    this.timer = 0;
    const query = new URLSearchParams({flow: 1});
    if (this.session) query.set('session_id', this.session);
    else if (this.start) query.set('start', this.start);
    if (this.offset !== null) query.set('offset', this.offset);
    if (this.readonly) query.set('readonly', 1);
    this.on.state(this.attempts ? 'reconnecting' : 'connecting', this.attempts ? 'Reconnecting …' : 'Connecting …');
    if (this.asking) return;
    this.asking = true;
    const address = await socketAddress(`/v1/shell/ws?${query}`).catch((problem) => problem);
    this.asking = false;
    if (address instanceof Error) return this.closed(address.ended ? {code: 1008, reason: address.message} : {code: 0});
    const socket = this.socket = new WebSocket(address);
    this.heard = performance.now();
    socket.onmessage = (event) => socket === this.socket && this.take(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.socket && this.closed(event);
  }

  // In the middle of a text, a session that was ended must not be continued.
  begin() {
    Object.assign(this, {session: null, offset: null, attempts: 0});
    this.open();
  }

  closed(event) {
    this.socket = null;
    if (event.code === 1000 || event.code === 1008) return this.on.state('ended', `Ended${event.reason ? `: ${event.reason}` : ''}`);
    const pause = Math.min(kLongestPause, kFirstPause * 2 ** this.attempts++) * (0.75 + Math.random() / 2);
    this.on.state('reconnecting', 'Reconnecting …');
    this.timer = setTimeout(() => this.open(), pause);
  }

  send(type, data) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify({type, data}));
    return true;
  }

  // Keys that are pressed while there is no connection are lost, as the state says: typed later, they could mean something else.
  type(text) {
    if (this.readonly) return;
    for (let at = 0, end; at < text.length; at = end) {
      end = Math.min(at + kInputCharacters, text.length);
      if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end--;
      this.send('input', text.slice(at, end));
    }
  }

  shown(offset) {
    if (offset - this.acknowledged < kAckBytes) return;
    if (this.send('ack', {offset})) this.acknowledged = offset;
  }

  take(message) {
    this.heard = performance.now();
    const {type, data} = message;
    if (type === 'session_id') {
      this.session = data;
    } else if (type === 'ready') {
      this.attempts = 0;
      this.offset ??= message.offset;
      this.acknowledged = message.offset;
      this.readonly = message.readonly;
      this.on.state('connected', this.readonly ? 'Connected, read-only' : 'Connected');
      this.on.ready(message);
    } else if (type === 'output') {
      this.offset = message.offset;
      this.on.output(data, () => this.shown(message.offset));
    } else if (type === 'gap') {
      this.offset = data.to;
      this.on.gap(data.from, data.to);
    } else if (type === 'size') {
      this.on.size(data);
    } else if (type === 'ping') {
      this.send('pong', {timestamp: message.timestamp});
    } else if (type === 'error') {
      this.on.problem(data);
    }
  }
}
