// Live and ended sessions: a list, and one of them with its walls, its use of limits and its records.
const kInterval = 2000;
const chosen = {id: '', stop: null};

function option(id, lines) {
  const node = make('li', {role: 'option', id: `o-${id}`, 'data-id': id, 'aria-selected': id === chosen.id}, ...lines);
  node.addEventListener('click', () => choose(id));
  return node;
}

// Keeps the nodes of rows that stay, so that readers and screen readers do not lose their position every two seconds.
function fill(list, rows) {
  const old = new Map([...list.children].map((node) => [node.dataset.id, node]));
  list.replaceChildren(...rows.map(([id, lines]) => {
    const node = old.get(id);
    if (!node) return option(id, lines);
    node.setAttribute('aria-selected', id === chosen.id);
    node.replaceChildren(...lines);
    return node;
  }));
}

function keys(list) {
  list.addEventListener('keydown', (event) => {
    const options = [...list.children];
    if (!options.length) return;
    const at = options.findIndex((o) => o.dataset.id === chosen.id);
    const to = {ArrowDown: Math.min(at + 1, options.length - 1), ArrowUp: Math.max(at - 1, 0), Home: 0, End: options.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(options[to].dataset.id);
    options[to].scrollIntoView({block: 'nearest'});
  });
}

async function allSessions() {
  const sessions = [];
  for (let after = '';;) {
    const page = await get(`/v1/sessions?after=${encodeURIComponent(after)}`);
    sessions.push(...page.sessions);
    if (!page.next || sessions.length >= 2000) return sessions;
    after = page.next;
  }
}

// Idle sessions beyond these are a count, until their list is asked for.
const kMostIdle = 20;
let live = new Map(), showIdle = false;

function withoutIdle(sessions) {
  const idle = sessions.filter(isIdle);
  const rest = idle.length - kMostIdle;
  byId('idle-sessions').hidden = rest <= 0;
  if (rest <= 0) return sessions;
  const toggle = action(showIdle ? 'Hide' : 'Show', () => ((showIdle = !showIdle), refreshSessions()));
  toggle.id = 'toggle-idle';
  keepFocus(byId('idle-sessions'), () => byId('idle-sessions').replaceChildren(`${showIdle ? 'With' : 'And'} ${plural(rest, 'more idle session')}: `,
      countsBy(idle, (s) => s.domain).map(([domain, n]) => `${n} ${domain}`).join(', '), ' ', toggle));
  idle.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));  // the newest stay
  const hidden = new Set(showIdle ? [] : idle.slice(kMostIdle).map((s) => s.session));
  return sessions.filter((s) => !hidden.has(s.session) || s.session === chosen.id);
}

async function refreshSessions() {
  const sessions = await allSessions();
  live = new Map(sessions.map((s) => [s.session, s]));
  byId('session-count').textContent = `(${sessions.length})`;
  byId('no-sessions').hidden = sessions.length > 0;
  fill(byId('sessions'), withoutIdle(sessions).map((s) => [s.session, [
    make('strong', {}, s.domain), ` ${s.label || s.session} `, badge(s.tier, s.tier === 'T3' ? 'good' : 'warn'), make('br'),
    make('small', {}, `${s.workspace ?? 'default'}${s.isolation === 'private' ? ', private' : ''} · ${s.processes} processes · ${size(s.memory_bytes)} · ${s.execs} running`)]]));
  const logs = await get('/v1/audit/sessions?state=ended&limit=50');
  fill(byId('ended'), logs.sessions.map((s) => [s.id, [make('strong', {}, s.domain), ` ${s.label || s.id}`, make('br'),
    make('small', {}, [s.ended, s.reason, `${s.records} records`].filter(Boolean).join(' · '))]]));
  for (const list of [byId('sessions'), byId('ended')]) {
    const has = [...list.children].some((o) => o.dataset.id === chosen.id);
    if (has) list.setAttribute('aria-activedescendant', `o-${chosen.id}`);
    else list.removeAttribute('aria-activedescendant');
  }
  showUse();
}

function showUse() {
  const place = byId('use');
  const s = live.get(chosen.id);
  if (!place) return;
  if (!s) return place.replaceChildren('The session has ended; its records stay.');
  const limits = s.limits ?? {};
  place.replaceChildren(facts([
    ['memory', use('memory', s.memory_bytes, limits.memory_bytes, size)],
    ['processes', use('processes', s.processes, limits.processes)],
    ['commands', use('commands', s.execs, limits.execs)],
    ['processor', `${(s.cpu_us / 1e6).toFixed(2)} s, at most ${limits.cpu_percent ?? '–'} %`],
    ['network', s.network], ['home', s.home]]));
}

const kDenials = new Set(['denial', 'denials_dropped', 'denial_audit_closed', 'limit_hit', 'exec_refused', 'request_refused',
                          'path_refusal', 'egress_refused']);
function recordLine(record) {
  const {seq, time, event, prev, hash, mono_us, ...rest} = record;
  return make('li', {'data-event': event}, `${time.slice(11, 23)} `, badge(event, record.advisory ? 'warn' : kDenials.has(event) ? 'bad' : ''), ' ',
              Object.entries(rest).map(([k, v]) => `${k}=${typeof v === 'string' ? v : JSON.stringify(v)}`).join('  '));
}

const kKeep = 500;
function addRecord(list, record) {
  const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
  list.append(recordLine(record));
  while (list.children.length > kKeep) list.firstChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

async function choose(id) {
  if (chosen.stop) chosen.stop.abort();
  chosen.id = id;
  chosen.stop = new AbortController();
  const {signal} = chosen.stop;
  for (const node of document.querySelectorAll('[role="option"]')) node.setAttribute('aria-selected', node.dataset.id === id);
  const denials = make('ul', {class: 'log', id: 'denials', 'aria-label': 'Denials', tabindex: '0'});
  const records = make('ul', {class: 'log', id: 'records', 'aria-label': 'Records', tabindex: '0'});
  const confinement = make('div', {id: 'confinement'});
  byId('session').replaceChildren(make('h2', {}, id), make('div', {id: 'use'}), confinement, make('h2', {}, 'Denials'), denials,
                                  make('h2', {}, 'Records'), records);
  showUse();
  showConfinement(id, confinement).catch(say);
  follow(`/v1/audit/sessions/${encodeURIComponent(id)}?follow=true`, signal, (record) => {
    if (kDenials.has(record.event)) addRecord(denials, record);
    addRecord(records, record);
  }).catch((problem) => signal.aborted || say(problem));
}

async function showConfinement(id, place) {
  if (!live.has(id)) return;
  const {statement} = await get(`/v1/sessions/${encodeURIComponent(id)}/confinement`);
  const c = statement.confinement;
  place.replaceChildren(
      make('h2', {}, 'Walls ', badge(c.tier, c.tier === 'T3' ? 'good' : 'warn')), walls(c.mechanisms),
      make('h2', {}, 'Not stopped'), residual(c.residual),
      make('h2', {}, 'Granted paths'),
      make('div', {class: 'scroll', role: 'group', tabindex: '0', 'aria-label': 'Granted paths'}, table(['path', 'access', 'programs'], c.grants.map((g) => [make('code', {}, g.path), g.access,
          g.execute ? 'may run' : '']))));
}
