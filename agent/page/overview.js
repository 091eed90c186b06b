// The overview: refusals first, then what runs, over time and beside its limits, and the chambers with what each may reach.
const kRefusals = 'denial,denials_dropped,limit_hit,exec_refused,request_refused,path_refusal,egress_refused';
const kMostAsked = 12, kMostLanes = 24, kMostQuietLanes = 8, kMostBars = 12, kMostRefusals = 40;
const kSpan = 60 * 60 * 1000;

const isIdle = (s) => s.execs === 0 && s.processes <= 1;
// The API's own ids are long numbers: their beginning is enough for people.
const nameOf = (s) => `${s.domain} ${(s.label || s.session || s.id).replace(/^([0-9a-f]{8})[0-9a-f]{24}$/, '$1')}`;

// A refusal in few words: what was tried, by which program, and what it got.
function refusalText(record) {
  const {seq, time, event, prev, hash, mono_us, ...rest} = record;
  const words = [rest.syscall, rest.path ?? rest.decoded?.path, rest.errno && `→ ${rest.errno}`, rest.limit && `limit ${rest.limit}`, rest.reason,
                 rest.host && `${rest.host}${rest.port ? `:${rest.port}` : ''}`, rest.refusal,
                 rest.untrusted?.comm && `by ${rest.untrusted.comm}`].filter(Boolean);
  const all = Object.entries(rest).map(([k, v]) => `${k}=${typeof v === 'string' ? v : JSON.stringify(v)}`).join('  ');
  return make('code', {title: short(all, 2000)}, short(words.length ? words.join(' ') : all, 300));
}

function countsBy(list, key) {
  const counts = new Map();
  for (const one of list) counts.set(key(one), (counts.get(key(one)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

// The records of refusals of one session. An ended session's are read once; a running one is asked again.
const refusalsOf = new Map();
async function refusals(log) {
  const known = refusalsOf.get(log.id);
  if (known?.final) return known.records;
  const {records} = await get(`/v1/audit/sessions/${encodeURIComponent(log.id)}?kind=${kRefusals}&limit=100`);
  if (refusalsOf.size > 400) refusalsOf.clear();
  refusalsOf.set(log.id, {records, final: log.state === 'ended'});
  return records;
}

async function refreshOverview() {
  const [sessions, {sessions: logs}] = await Promise.all([allSessions(), get('/v1/audit/sessions?limit=200')]);
  const now = Date.now();
  const lately = logs.filter((l) => l.started && (!l.ended || now - Date.parse(l.ended) < kSpan));
  const busy = new Set(sessions.filter((s) => !isIdle(s)).map((s) => s.session));
  const asked = [...lately.filter((l) => l.denials > 0), ...lately.filter((l) => busy.has(l.id)), ...lately.filter((l) => l.state === 'running')];
  const chosenLogs = [...new Map(asked.map((l) => [l.id, l])).values()].slice(0, kMostAsked);
  const found = await Promise.all(chosenLogs.map((l) => refusals(l).catch(() => [])));
  const refused = new Map(chosenLogs.map((l, i) => [l.id, found[i]]));
  showRefusals(chosenLogs, refused);
  showFigures(sessions, lately, refused);
  showTimeline(lately, refused, busy, now);
  showLimits(sessions);
  await showChambers(sessions);
}

function showRefusals(logs, refused) {
  const all = logs.flatMap((log) => (refused.get(log.id) ?? []).map((record) => ({log, record})))
      .sort((a, b) => (a.record.time < b.record.time ? 1 : -1));
  byId('refused').replaceChildren(...all.slice(0, kMostRefusals).map(({log, record}) => {
    const {time, event} = record;
    const open = make('button', {class: 'plain'}, nameOf(log));
    open.addEventListener('click', () => openSession(log.id));
    return make('li', {}, `${clock(Date.parse(time))} `, badge(event.replaceAll('_', ' '), record.advisory ? 'warn' : 'bad'), ' ', open, ' ',
                refusalText(record));
  }));
  byId('no-refused').hidden = all.length > 0;
}

function showFigures(sessions, lately, refused) {
  const idle = sessions.filter(isIdle).length;
  const figure = (value, name, kind = '') => make('div', {class: `figure ${kind}`}, make('strong', {}, String(value)), make('span', {}, name));
  const count = [...refused.values()].reduce((n, records) => n + records.length, 0);
  const sum = (key) => sessions.reduce((n, s) => n + (s[key] ?? 0), 0);
  byId('figures').replaceChildren(
      figure(sessions.length - idle, 'sessions at work'), figure(idle, 'idle sessions'), figure(sum('processes'), 'processes'),
      figure(size(sum('memory_bytes')), 'of memory'), figure(lately.filter((l) => l.ended).length, 'ended in this hour'),
      figure(count, 'refusals', count ? 'bad' : 'good'));
  byId('by-domain').replaceChildren(...countsBy(sessions, (s) => s.domain).map(([domain, n]) => make('li', {}, badge(`${n} ${domain}`))));
}

function showTimeline(lately, refused, busy, now) {
  const weight = (l) => (refused.get(l.id)?.length ? 2 : 0) + (busy.has(l.id) ? 1 : 0);
  const newest = [...lately].sort((a, b) => weight(b) - weight(a) || (a.started < b.started ? 1 : -1));
  const shown = [...newest.filter(weight), ...newest.filter((l) => !weight(l)).slice(0, kMostQuietLanes)].slice(0, kMostLanes);
  const rows = shown.map((l) => {
    const marks = (refused.get(l.id) ?? []).map((r) => Date.parse(r.time));
    return {id: l.id, name: nameOf(l), from: Date.parse(l.started), to: l.ended ? Date.parse(l.ended) : now, marks,
            kind: marks.length ? 'refused' : l.state === 'running' ? 'running' : 'ended'};
  });
  const first = Math.min(now - 60_000, ...rows.map((r) => r.from));
  const rest = lately.length - shown.length;
  keepFocus(byId('timeline'), () => byId('timeline').replaceChildren(
      rows.length ? timeline(rows, Math.max(first, now - kSpan), now, (row) => openSession(row.id)) : 'No session in this hour.',
      rest > 0 ? make('p', {class: 'hint'}, `and ${plural(rest, 'session')} more`) : ''));
}

function showLimits(sessions) {
  const share = (s) => Math.max(s.memory_bytes / (s.limits?.memory_bytes || Infinity), s.processes / (s.limits?.processes || Infinity));
  const most = sessions.filter((s) => !isIdle(s)).sort((a, b) => share(b) - share(a)).slice(0, kMostBars);
  byId('limits').replaceChildren(most.length ? table(['session', 'memory', 'processes', 'processor'], most.map((s) => [
    short(nameOf(s), 40), make('span', {class: 'line'}, limitBar('memory', s.memory_bytes, s.limits?.memory_bytes, size), ` ${size(s.memory_bytes)}`),
    make('span', {class: 'line'}, limitBar('processes', s.processes, s.limits?.processes, String), ` ${s.processes}`), `${(s.cpu_us / 1e6).toFixed(1)} s`])) : 'No session is at work.');
}

// What a domain's sessions may reach, in few words; read once for each domain and digest.
const reaches = new Map();
async function reach(domain) {
  if (!reaches.has(domain)) {
    const policy = await get(`/v1/policies/${encodeURIComponent(domain)}`);
    const writes = policy.grants.filter((g) => g.access !== 'read').map((g) => g.path);
    reaches.set(domain, {
      network: policy.network, reads: policy.grants.filter((g) => g.access === 'read').length,
      writes: [policy.home === 'none' ? null : `home (${policy.home})`, policy.tmp === 'none' ? null : `/tmp (${policy.tmp})`, ...writes].filter(Boolean),
      why: policy.description});
  }
  return reaches.get(domain);
}

async function showChambers(sessions) {
  const shown = countsBy(sessions, (s) => s.workspace ?? 'default').slice(0, kMostBars);
  const boxes = await Promise.all(shown.map(async ([workspace, n]) => {
    const inside = sessions.filter((s) => (s.workspace ?? 'default') === workspace);
    const chambers = await Promise.all(countsBy(inside, (s) => s.domain).map(([domain, count]) => chamber(domain, count)));
    return make('section', {class: 'chamber'}, make('h3', {}, workspace, ' ', make('small', {}, plural(n, 'session'))),
                make('p', {class: 'hint'}, 'its own home, /tmp and loopback; other workspaces do not exist for it'),
                make('div', {class: 'chambers'}, ...chambers));
  }));
  byId('chambers').replaceChildren(make('div', {class: 'chamber outer'},
      make('h3', {}, 'the container'),
      make('p', {class: 'hint'}, 'caisson-launcher decides and builds the walls; caisson-agent answers requests and can start nothing itself'),
      make('div', {class: 'chambers'}, ...(boxes.length ? boxes : [make('p', {}, 'No session yet.')]))));
}

async function chamber(domain, count) {
  const may = await reach(domain).catch(() => null);
  const network = {none: 'no network', loopback: 'its workspace’s loopback alone'};
  return make('section', {class: 'chamber inner', title: may?.why}, make('h4', {}, `${count} × ${domain}`),
      may && make('dl', {}, make('dt', {}, 'writes'), make('dd', {}, may.writes.join(', ') || 'nothing'),
                  make('dt', {}, 'reads'), make('dd', {}, `${plural(may.reads, 'granted path')}`),
                  make('dt', {}, 'network'), make('dd', {}, network[may.network] ?? String(may.network))));
}

function openSession(id) {
  select(byId('tab-sessions'), true);
  choose(id).catch(say);
}
