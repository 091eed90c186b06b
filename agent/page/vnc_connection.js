// Connection: noVNC's RFB over the server's WebSocket, made again when it is cut.
import RFB from '/static/novnc-1.7.0/novnc.js';

const kFirstPause = 250, kLongestPause = 10_000;  // ms between two attempts

// Addresses as other servers have them name the socket and its ticket: ?path=websockify%3Fticket%3D… A login makes tickets of its
// own, which do not run out with the first connection.
function socketOf(query) {
  const named = new URL(query.get('path') || 'websockify', new URL('/', location.href));
  const path = named.pathname.endsWith('/vnc/websockify') ? '/vnc/websockify' : '/websockify';
  const given = ['ticket', 'api_key'].find((name) => named.searchParams.get(name));
  return {path, given: given ? [given, named.searchParams.get(given)] : null};
}

class Connection {
  // on: state(name, text), ready(rfb), copied(text)
  constructor(place, query, on) {
    Object.assign(this, {place, query, on, attempts: 0, timer: 0, rfb: null, given: false, entered: false});
    this.viewOnly = isOn(query.get('view_only'), false);
    this.again = isOn(query.get('reconnect'), true);
    for (const event of ['online', 'focus']) addEventListener(event, () => this.timer && this.open());
  }

  async address() {
    const {path, given} = socketOf(this.query);
    const asked = this.viewOnly ? `${path}?view_only=1` : path;
    await begun;
    this.given = !token && Boolean(given);
    if (!this.given) return socketAddress(asked);
    const address = new URL(asked, location.href);
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
    address.searchParams.set(...given);
    return address.href;
  }

  async open() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.asking || this.rfb) return;
    this.on.state(this.attempts ? 'reconnecting' : 'connecting', this.attempts ? 'Reconnecting …' : 'Connecting …');
    this.asking = true;
    const address = await this.address().catch((problem) => problem);
    this.asking = false;
    if (address instanceof Error) return this.closed(address.message);
    const socket = new WebSocket(address);
    let reason = '';
    socket.addEventListener('close', (event) => reason = event.reason);
    const rfb = this.rfb = new RFB(this.place, socket, {shared: true});
    rfb.viewOnly = this.viewOnly;
    rfb.addEventListener('connect', () => {
      this.attempts = 0;
      this.entered = !this.given;
      this.on.state('connected', this.viewOnly ? 'Connected, view-only' : 'Connected');
      this.on.ready(rfb);
    });
    rfb.addEventListener('clipboard', (event) => this.on.copied(event.detail.text));
    rfb.addEventListener('disconnect', () => {
      this.rfb = null;
      // The socket's own event, which has the reason, may come after noVNC's.
      setTimeout(() => this.closed(reason));
    });
  }

  closed(reason) {
    document.documentElement.classList.remove('noVNC_connected');
    if (!this.again) return this.on.state('ended', reason ? `Ended: ${reason}` : 'Ended');
    const pause = Math.min(kLongestPause, kFirstPause * 2 ** this.attempts++) * (0.75 + Math.random() / 2);
    this.on.state('reconnecting', reason ? `Reconnecting: ${reason}` : 'Reconnecting …');
    this.timer = setTimeout(() => this.open(), pause);
  }
}
