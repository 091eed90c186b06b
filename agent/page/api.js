// Requests. The key comes once with the address, leaves it at once, and lives as long as this tab.
const address = new URL(location.href);
if (address.searchParams.has('api_key')) {
  sessionStorage.setItem('key', address.searchParams.get('api_key'));
  address.searchParams.delete('api_key');
  history.replaceState(null, '', address);
}

function request(path, options = {}) {
  const key = sessionStorage.getItem('key');
  return fetch(path, {...options, headers: {...(key ? {'X-AIO-API-Key': key} : {}), ...options.headers}});
}

async function get(path) {
  const answer = await request(path);
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok || body.success === false) throw new Error(`${path}: ${answer.status} ${body.message ?? ''}`);
  return body.data;
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
