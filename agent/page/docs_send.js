// Sends a request, shows it as a line for a shell, and shows the answer. Answers are read to kShown bytes as text, to kKept as a file.
const kShown = 1 << 20, kKept = 256 << 20;
// Invisible characters, and those that change the direction of text, are written as numbers, so that the line does what it shows.
const quoted = (text) => (plain(text) === text ? `'${text.replaceAll("'", "'\\''")}'` : `$'${plain(text.replace(/[\\']/g, '\\$&'))}'`);

// {method, path, headers, body}: body is text, FormData or undefined.
function requestOf(operation) {
  const query = new URLSearchParams();
  const headers = {};
  let path = operation.path;
  for (const {name, place, value} of operation.parameters()) {
    if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value === '') continue;
    else if (place === 'query') query.set(name, value);
    else headers[name] = value;
  }
  const workspace = byId('workspace').value.trim();
  if (workspace && operation.inWorkspace) headers['X-Caisson-Workspace'] = workspace;
  if (operation.stream?.checked) headers.Accept = 'text/event-stream';
  const body = operation.body();
  if (typeof body === 'string') headers['Content-Type'] = 'application/json';
  return {method: operation.method.toUpperCase(), path: path + (query.size ? `?${query}` : ''), headers, body};
}

function curlOf(request) {
  const words = ['curl', ...(request.method === 'GET' ? [] : ['-X', request.method]), quoted(location.origin + request.path),
                 '-H', '"X-AIO-API-Key: $CAISSON_KEY"'];
  for (const [name, value] of Object.entries(request.headers)) words.push('-H', quoted(`${name}: ${value}`));
  if (typeof request.body === 'string') words.push('--data-raw', quoted(request.body));
  else if (request.body)
    for (const [name, value] of request.body) words.push('-F', quoted(`${name}=${value instanceof File ? `@${value.name}` : value}`));
  return words.join(' ');
}

// JSON with line breaks, token by token: numbers stay as they were written.
function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;  // not the JSON that it claims to be
  }
  let out = '', level = 0, last = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const closes = token === '}' || token === ']';
    if (closes) --level;
    const opened = last === '{' || last === '[';
    if (last === ',' || opened !== closes) out += `\n${'  '.repeat(level)}`;
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') ++level;
    last = token;
  }
  return out;
}

// Shows text as it arrives, up to kShown; anything else becomes a file to save.
async function readBody(answer, type, shown) {
  const textual = /^(text\/|application\/json)/.test(type);
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder(), parts = [];
  let bytes = 0, cut = false;
  while (reader && !cut) {
    const {value, done} = await reader.read();
    if (done) break;
    bytes += value.length;
    cut = bytes > (textual ? kShown : kKept);
    if (!textual) parts.push(value);
    else shown.append(plain(decoder.decode(value, {stream: true})));
  }
  if (cut) await reader.cancel();
  const note = cut ? `cut: only the first ${size(textual ? kShown : kKept)} were read` : size(bytes);
  if (textual && type.includes('json') && !cut) shown.textContent = pretty(shown.textContent);
  if (!textual && bytes && !cut) {
    const link = make('a', {href: URL.createObjectURL(new Blob(parts, {type: 'application/octet-stream'})), download: 'answer'}, 'Save the answer');
    shown.replaceChildren(link);
  }
  return note;
}

async function send(operation, place, stop) {
  const line = make('p', {role: 'status'}, 'Sent …'), shown = make('pre', {tabindex: '0', 'aria-label': 'Body of the answer'});
  const began = performance.now();
  const seconds = () => `${((performance.now() - began) / 1000).toFixed(3)} s`;
  place.replaceChildren(line);
  try {
    const {path, ...options} = requestOf(operation);
    const answer = await request(path, {...options, signal: stop});
    const type = answer.headers.get('content-type') ?? '';
    const status = badge(`${answer.status} ${answer.statusText}`, answer.ok ? 'good' : 'bad');
    line.replaceChildren(status, ` ${seconds()}, …`);
    const all = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    place.append(make('details', {}, make('summary', {}, 'Headers'), make('pre', {tabindex: '0'}, all)), shown);
    const note = await readBody(answer, type, shown);
    line.replaceChildren(status, ` ${seconds()}, ${note}`);
  } catch (problem) {
    if (problem.name === 'AbortError') line.replaceChildren(badge('stopped', 'warn'), ` after ${seconds()}`);
    else line.replaceChildren(badge('not sent', 'bad'), ` ${problem.message}`);
  }
}
