// Requests of our own pages. The browser keeps a cookie that no script sees; the server takes it for the API only with the page token,
// which is in the document, and which scripts of previews cannot read. The key itself is never kept: the form gives it to the server.
let token = document.querySelector('meta[name="caisson-page"]')?.content ?? '';
let asking = null;
// The token of a link that only watches a terminal. It came behind the #, which no server sees, and is kept in this entry of the
// history alone: it replaces no login.
let watching = '';

// Pages with a choice of workspaces set it; empty: the default one.
let workspace = '';
const chosenWorkspace = () => (workspace === 'default' ? '' : workspace);
const inWorkspace = () => (chosenWorkspace() ? {'X-Caisson-Workspace': chosenWorkspace()} : {});

async function login(secret) {
  const answer = await fetch('/v1/page/login', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(secret)});
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message ?? `login: ${answer.status}`);
  token = body.data.token;
  showLogin();
}

// The server put a login for this page behind the address where it cannot put the token into the document.
async function begin() {
  watching = location.hash.match(/^#watch=(.*)$/)?.[1] ?? history.state?.watch ?? '';
  if (watching) return history.replaceState({watch: watching}, '', location.pathname + location.search);
  const handed = location.hash.match(/^#login=(.*)$/)?.[1];
  if (!handed) return;
  history.replaceState(null, '', location.pathname + location.search);
  await login({login: handed}).catch(() => {});  // too late: the key is asked for
}
const begun = begin();

function showLogin() {
  for (const button of document.querySelectorAll('button.logout')) button.hidden = !token;
}

// All requests that need a login wait for the same form.
function askForKey() {
  asking ??= new Promise((resolve) => {
    const field = make('input', {type: 'password', autocomplete: 'off', spellcheck: 'false', required: '', size: 32});
    const told = make('p', {role: 'alert', class: 'bad'});
    const form = make('form', {}, make('label', {}, 'API key ', field), make('button', {}, 'Log in'));
    const dialog = make('dialog', {id: 'login', 'aria-label': 'Log in'}, form, told);
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const key = field.value;
      field.value = '';
      try {
        await login({key});
        dialog.remove();
        asking = null;
        resolve();
      } catch (problem) {
        told.textContent = problem.message;
        field.focus();
      }
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

// An answer that comes after the choice of another workspace belongs to the one before: it is neither shown nor used in the new one.
function stillIn(from) {
  if (from !== chosenWorkspace()) throw Object.assign(new Error('another workspace was chosen meanwhile'), {left: true});
}

async function request(path, options = {}) {
  const from = chosenWorkspace(), place = inWorkspace();
  await begun;
  const credential = () => (watching ? {'X-AIO-API-Key': watching} : token ? {'X-Caisson-Page': token} : {});
  const send = () => fetch(path, {cache: 'no-store', ...options, headers: {...place, ...options.headers, ...credential()}});
  let answer = await send();
  if (watching && answer.status === 401) throw Object.assign(new Error('this link has ended'), {ended: true});
  while (answer.status === 401) {
    await askForKey();
    answer = await send();
  }
  stillIn(from);
  return answer;
}

// flat: the answer is not in an envelope.
async function get(path, {flat, ...options} = {}) {
  const from = chosenWorkspace();
  const answer = await request(path, options);
  const body = await answer.json().catch(() => ({}));
  stillIn(from);
  if (!answer.ok || body.success === false) throw new Error(`${path}: ${answer.status} ${body.message ?? ''}`);
  return flat ? body : body.data;
}

const post = (path, body) => get(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});

async function logout() {
  await request('/v1/page/logout', {method: 'POST'});
  location.reload();
}

// The address of a page in another window or of a WebSocket, which can send no headers: a ticket is in it, good for this path and
// workspace, and for some seconds.
async function pageAddress(path) {
  const address = new URL(path, location.href);
  return withTicket(address, {path: address.pathname, ...(chosenWorkspace() ? {workspace: chosenWorkspace()} : {})});
}

// The address of a port. Pages of another workspace than the default one have an origin of their own.
async function portAddress(port) {
  const path = `/proxy/${port}/`;
  if (!chosenWorkspace()) return pageAddress(path);
  const local = /^(127\.|\[::1\]$)/.test(location.hostname);
  const domain = local ? 'localhost' : location.hostname;
  if (/^\[|^[\d.]+$/.test(domain)) throw new Error(`Ports of the workspace ${workspace} open only where this page is opened by a name, which is in CAISSON_PREVIEW_HOSTS`);
  const address = new URL('/', location.href);
  address.hostname = `${port}-${workspace}.${domain}`;
  return withTicket(address, {port, workspace});
}

async function withTicket(address, asked) {
  const {ticket} = await get('/tickets', {flat: true, method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(asked)});
  address.searchParams.set('ticket', ticket);
  return address.href;
}

async function socketAddress(path) {
  const address = new URL(await pageAddress(path));
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  return address.href;
}

// The records of a session's log as they are written: Server-Sent Events, read by fetch because EventSource sends no headers.
// Ends with the session, or with the signal.
async function follow(path, signal, each) {
  const answer = await request(path, {signal, headers: {Accept: 'text/event-stream'}});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = '';;) {
    const {value, done} = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6)).join('\n');
      if (data) each(JSON.parse(data));
    }
  }
}

for (const button of document.querySelectorAll('button.logout')) button.addEventListener('click', () => logout().catch(say));
showLogin();
