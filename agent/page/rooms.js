// Terminals, ports and notebooks of the workspace.
async function refreshTerminals() {
  const {sessions} = await get('/v1/shell/sessions');
  const rows = Object.entries(sessions);
  byId('terminals').replaceChildren(...rows.map(([id, s]) => make('li', {}, pageLink(`/terminal?session_id=${encodeURIComponent(id)}`, id), ' ',
      badge(s.status ?? 'ready'), ' ', make('small', {}, short(s.current_command ?? '', 80)))));
  byId('no-terminals').hidden = rows.length > 0;
}

// /proc/net/tcp: a line for each socket; state 0A listens. 127.0.0.1 and :: are both reached by the proxy.
function listeners(text) {
  const ports = new Set();
  for (const line of text.split('\n')) {
    const [, local, , state] = line.trim().split(/\s+/);
    if (state === '0A') ports.add(parseInt(local.split(':').pop(), 16));
  }
  return [...ports].sort((a, b) => a - b);
}

async function refreshPorts() {
  // Looking needs a session: one is not made just because the view is opened.
  const sessions = await get('/v1/bash/sessions');
  if (!sessions.length && !byId('ports').dataset.asked) return;
  await findPorts();
}

// In a session of its own, which is closed again.
async function findPorts() {
  byId('ports').dataset.asked = 'yes';
  const seen = await post('/v1/bash/exec', {command: 'cat /proc/net/tcp /proc/net/tcp6 2>/dev/null', max_output_length: 0});
  request(`/v1/bash/sessions/${encodeURIComponent(seen.session_id)}/close`, {method: 'POST'}).catch(() => {});
  const ports = listeners(seen.stdout ?? '');
  byId('ports').replaceChildren(...ports.map((port) => make('li', {}, portLink(port))));
  byId('no-ports').hidden = ports.length > 0;
}

const notebook = {session: ''};
async function refreshNotebooks() {
  const {sessions} = await get('/v1/jupyter/sessions');
  const before = byId('notebook').value;
  byId('notebook').replaceChildren(make('option', {value: ''}, 'a new notebook'),
      ...Object.entries(sessions).map(([id, s]) => make('option', {value: id}, `${short(id, 12)} · ${s.kernel_name}`)));
  byId('notebook').value = notebook.session in sessions ? notebook.session : before in sessions ? before : '';
}

async function runCell() {
  const code = byId('cell').value;
  byId('outputs').replaceChildren('…');
  const done = await post('/v1/jupyter/execute', {code, ...(byId('notebook').value ? {session_id: byId('notebook').value} : {})});
  notebook.session = done.session_id;
  byId('outputs').replaceChildren(...done.outputs.map(output), badge(done.status, done.status === 'ok' ? 'good' : 'bad'));
  await refreshNotebooks();
}

// Of what a kernel sends, text is shown as text and PNG and JPEG as pictures; HTML and scripts are not carried out.
function output(one) {
  if (one.output_type === 'error') return make('pre', {class: 'bad'}, [one.ename, one.evalue].filter(Boolean).join(': '));
  for (const type of ['image/png', 'image/jpeg'])
    if (/^[A-Za-z0-9+/=\s]+$/.test(one.data?.[type] ?? '')) return make('img', {src: `data:${type};base64,${one.data[type].replace(/\s/g, '')}`, alt: 'a picture that the cell made', class: 'preview'});
  return make('pre', {}, one.text ?? one.data?.['text/plain'] ?? '');
}

function watchRooms() {
  byId('open-screen').addEventListener('click', () => openPage('/vnc/').catch(say));
  byId('new-terminal').addEventListener('click', () => openPage('/terminal').catch(say));
  byId('find-ports').addEventListener('click', () => findPorts().catch(say));
  byId('open-port').addEventListener('submit', (event) => {
    event.preventDefault();
    openPort(Number(byId('port').value)).catch(say);
  });
  byId('run-cell').addEventListener('click', () => runCell().catch((problem) => (byId('outputs').replaceChildren(), say(problem))));
  byId('cell').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    runCell().catch(say);
  });
}
