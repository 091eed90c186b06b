// Requests. The key is the address's, as it was needed to get this document.
const key = new URL(location.href).searchParams.get('api_key');

function request(path, options = {}) {
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
