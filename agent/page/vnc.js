// The screen and the bar above it. Query, as noVNC's own page has it: autoconnect, path, resize (off, scale, remote), view_only,
// quality (0 to 9), reconnect; and workspace.
function isOn(value, otherwise) {
  return value === null ? otherwise : !['0', 'false', 'off', 'no'].includes(value.toLowerCase());
}
const query = new URL(location.href).searchParams;
workspace = query.get('workspace') ?? '';

function showState(state, text) {
  byId('state').dataset.state = state;
  byId('state').textContent = plain(text);
  byId('connect').hidden = state !== 'ended';
}

// Without a wish, by what the browser knows of its network.
function quality() {
  const wished = query.get('quality') === null ? NaN : Number(query.get('quality'));
  if (wished >= 0 && wished <= 9) return Math.round(wished);
  const megabits = navigator.connection?.downlink ?? 10;
  return megabits < 2 ? 2 : megabits < 8 ? 5 : 8;
}

const connection = new Connection(byId('screen'), query, {
  state: showState,
  ready(rfb) {
    if (!connection.given) showControl();
    const resize = query.get('resize') ?? (connection.viewOnly ? 'scale' : 'remote');
    rfb.resizeSession = resize === 'remote';
    rfb.scaleViewport = resize !== 'off';
    rfb.clipViewport = resize === 'off';
    rfb.dragViewport = resize === 'off' && connection.viewOnly;
    rfb.qualityLevel = quality();
    rfb.compressionLevel = quality() < 6 ? 6 : 2;
    document.documentElement.classList.add('noVNC_connected');
    rfb.focus({preventScroll: true});
  },
  copied(text) {
    byId('text').value = text;
    navigator.clipboard?.writeText(text).catch(() => {});  // not permitted: it is in the panel
  },
});
navigator.connection?.addEventListener?.('change', () => connection.rfb && (connection.rfb.qualityLevel = quality()));

function toggle(id, act) {
  byId(id).addEventListener('click', (event) => {
    const on = event.currentTarget.getAttribute('aria-pressed') !== 'true';
    event.currentTarget.setAttribute('aria-pressed', on);
    act(on);
  });
}
const toScreen = () => connection.rfb?.focus({preventScroll: true});

byId('connect').addEventListener('click', () => connection.open());
toggle('copied', (on) => {
  byId('clipboard').hidden = !on;
  if (on) byId('text').focus();
});
byId('send').addEventListener('click', () => {
  connection.rfb?.clipboardPasteFrom(byId('text').value);
  toScreen();
});
// What was copied on this side is the screen's at the next look at it, where the browser lets a page read it.
let pasted = '';
async function offerClipboard() {
  if (connection.viewOnly || !connection.rfb) return;
  const text = await navigator.clipboard?.readText().catch(() => '');
  if (!text || text === pasted || text === byId('text').value) return;
  pasted = text;
  connection.rfb?.clipboardPasteFrom(text);
}
const permission = navigator.permissions?.query({name: 'clipboard-read'}).catch(() => null);
addEventListener('focus', async () => (await permission)?.state === 'granted' && offerClipboard());

toggle('full', (on) => (on ? document.documentElement.requestFullscreen() : document.exitFullscreen()).catch(say));
document.addEventListener('fullscreenchange', () => byId('full').setAttribute('aria-pressed', Boolean(document.fullscreenElement)));

// A device without keys shows its own for a field that has the focus; what it writes there is typed.
const touch = byId('touch');
toggle('keyboard', (on) => (on ? touch.focus() : toScreen()));
touch.addEventListener('blur', () => byId('keyboard').setAttribute('aria-pressed', false));
function typed(keysym) {
  connection.rfb?.sendKey(keysym, null);
}
touch.addEventListener('input', (event) => {
  if (event.isComposing) return;
  if (event.inputType === 'deleteContentBackward') typed(0xff08);
  for (const letter of touch.value) typed(letter === '\n' ? 0xff0d : letter.codePointAt(0) < 0x100 ? letter.codePointAt(0) : 0x1000000 + letter.codePointAt(0));
  touch.value = '';
});
touch.addEventListener('compositionend', () => touch.dispatchEvent(new InputEvent('input', {inputType: 'insertText'})));

document.addEventListener('keydown', (event) => {
  if (!event.shiftKey || event.key !== 'F6') return;
  event.preventDefault();
  event.stopPropagation();
  byId('copied').focus();
}, true);

// The state of the takeover. A page whose address has a ticket for the socket alone may not ask for it.
const kLookPause = 3000;
const ofTakeover = (method) => fetch('/vnc/takeover', {method, cache: 'no-store', headers: {...inWorkspace(), ...(token ? {'X-Caisson-Page': token} : {})}});
async function showControl() {
  if (!token && !connection.entered) return;
  const answer = await ofTakeover('GET').catch(() => null);
  const said = answer?.ok ? (await answer.json()).data : null;
  const alone = said?.active && said.mode === 'exclusive';
  byId('back').hidden = !alone || connection.viewOnly;
  byId('control').textContent = !said ? '' : alone ? `A person has the browser alone until ${clock(said.until)} UTC` : 'Programs have the browser, too';
}
byId('back').addEventListener('click', () => ofTakeover('DELETE').then(showControl).catch(say));
begun.then(showControl).then(() => setInterval(() => document.hidden || showControl(), kLookPause));

for (const id of ['keyboard', 'copied']) byId(id).hidden = connection.viewOnly;
if (isOn(query.get('autoconnect'), true)) connection.open();
else showState('ended', 'Not connected');
