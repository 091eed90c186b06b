// The terminal and the bar above it. Query: session_id (else a new session), readonly, workspace, start (the name of a program that the
// server lets a new session begin with).
const kThemes = {
  light: {background: '#fbfaf8', foreground: '#1c2024', cursor: '#1c2024', selectionBackground: '#b9d4ef', brightWhite: '#4a4f55', white: '#5b636b', yellow: '#8a5a00', brightYellow: '#8a5a00'},
  dark: {background: '#14171a', foreground: '#e4e7ea', cursor: '#e4e7ea', selectionBackground: '#37516b'},
};
allowStyles();
const query = new URL(location.href).searchParams;
workspace = query.get('workspace') ?? '';
const darkness = matchMedia('(prefers-color-scheme: dark)');
const theme = () => kThemes[darkness.matches ? 'dark' : 'light'];
const off = (value) => value === null || value === '0' || value === 'false';

const terminal = new Terminal({scrollback: 5000, fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', fontSize: 14, theme: theme(), minimumContrastRatio: 4.5});
const fit = new FitAddon.FitAddon();
terminal.loadAddon(fit);
refuseSequences(terminal);
terminal.open(byId('terminal'));
darkness.addEventListener('change', () => terminal.options.theme = theme());

let replayedTo = null;  // up to here it was written before this page came
let replaying = false;
let adopting = false;

function showState(state, text) {
  byId('state').dataset.state = state;
  byId('state').textContent = text;
  byId('again').hidden = state !== 'ended' || Boolean(watching);
  terminal.options.disableStdin = state !== 'connected' || connection.readonly;
}

function adopt({cols, rows}) {
  adopting = true;
  terminal.resize(cols, rows);
  adopting = false;
}

const connection = new Connection(query.get('session_id'), Boolean(watching) || !off(query.get('readonly')), query.get('start'), {
  state: showState,
  ready(fields) {
    const address = new URL(location.href);
    address.searchParams.set('session_id', connection.session);
    address.searchParams.delete('start');  // it has been started: another visit of this address only shows it
    history.replaceState(history.state, '', address);
    if (replayedTo === null) replayedTo = fields.end;
    replaying = connection.offset < replayedTo;
    byId('terminal').classList.toggle('fixed', connection.readonly);
    if (connection.readonly) return adopt(fields);
    fit.fit();
    connection.send('resize', {cols: terminal.cols, rows: terminal.rows});
  },
  output(text, done) {
    const end = connection.offset;
    terminal.write(withoutDirections(text), () => {
      if (end >= replayedTo) replaying = false;
      done();
    });
  },
  gap(from, to) {
    terminal.reset();
    const words = from < to ? `${to - from} bytes of output are no longer kept` : 'this is another session';
    terminal.write(`\x1b[2m[${words}]\x1b[0m\r\n`);
  },
  size: (fields) => (fields.cols !== terminal.cols || fields.rows !== terminal.rows) && adopt(fields),
  problem: (text) => terminal.write(`\r\n\x1b[31m[${safeTitle(String(text))}]\x1b[0m\r\n`),
});

// An old output may hold questions, such as for the cursor's position. They were answered when it was new; an answer now would be
// typed into whatever runs.
terminal.onData((data) => (replaying && data.startsWith('\x1b')) || connection.type(data));
terminal.onResize((size) => adopting || connection.readonly || connection.send('resize', size));
terminal.onTitleChange((title) => {
  byId('title').textContent = safeTitle(title);
  document.title = title ? `Terminal: ${safeTitle(title)}` : 'Caisson terminal';
});

const refit = () => connection.readonly || fit.fit();
new ResizeObserver(refit).observe(byId('terminal'));
addEventListener('focus', refit);

byId('terminal').addEventListener('paste', (event) => {
  event.preventDefault();
  event.stopPropagation();
  if (!terminal.options.disableStdin) terminal.paste(safePaste(event.clipboardData.getData('text/plain')));
}, true);

terminal.attachCustomKeyEventHandler((event) => {
  if (event.shiftKey && event.key === 'F6') {
    if (event.type === 'keydown') byId(watching ? 'reader' : 'share').focus();
    event.preventDefault();
    return false;
  }
  const keys = event.ctrlKey && event.shiftKey && !event.altKey && event.key.toLowerCase();
  if (keys === 'c') {
    if (event.type === 'keydown') document.execCommand('copy');  // xterm.js puts its selection there
    event.preventDefault();
  }
  return keys !== 'c' && keys !== 'v';  // pasting is the browser's
});

byId('again').addEventListener('click', () => {
  terminal.reset();
  replayedTo = null;
  connection.begin();
  terminal.focus();
});
byId('reader').addEventListener('click', (event) => {
  const on = terminal.options.screenReaderMode = !terminal.options.screenReaderMode;
  event.currentTarget.setAttribute('aria-pressed', on);
});
// The link has a token that only watches this session. Asked again, the server gives the same one until it is revoked.
const kLinkSeconds = 24 * 3600;
let link = null;
async function makeLink() {
  link = await post('/v1/tokens', {label: `terminal ${connection.session}`, terminal: connection.session, workspace: workspace || 'default', seconds: kLinkSeconds});
  const address = new URL('/terminal', location.href);
  address.search = new URLSearchParams({session_id: connection.session, readonly: 1, ...(workspace ? {workspace} : {})});
  address.hash = `watch=${link.token}`;
  return address.href;
}
function tell(id, text, after) {
  byId(id).textContent = text;
  setTimeout(() => byId(id).textContent = after, 3000);
}
byId('share').hidden = Boolean(watching);
byId('share').addEventListener('click', async () => {
  const address = await makeLink().catch(() => null);
  if (!address) return tell('share', 'No link can be made here', 'Copy read-only link');
  const done = await navigator.clipboard?.writeText(address).then(() => true, () => false);
  if (!done) prompt('Read-only link, good for a day:', address);
  tell('share', done ? 'Copied, good for a day' : 'Made, good for a day', 'Copy read-only link');
  byId('revoke').hidden = false;
});
byId('revoke').addEventListener('click', async () => {
  const done = await get(`/v1/tokens/${link.id}`, {method: 'DELETE'}).then(() => true, () => false);
  byId('revoke').hidden = done;
  if (done) tell('share', 'Link revoked', 'Copy read-only link');
});

terminal.focus();
connection.open();
