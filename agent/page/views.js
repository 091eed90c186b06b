// Workspaces, policies, and the container itself.
async function refreshWorkspaces() {
  const workspaces = await listWorkspaces();
  byId('workspaces').replaceChildren(...table(['name', 'state', 'sessions', 'home', 'all its sessions at most', 'ends'], workspaces.map((w) => [
    make('strong', {}, w.name), w.state, w.sessions, w.disk ? use('home', w.disk.bytes, w.disk.limit, size) : 'a volume',
    w.limits ? `${size(w.limits.memory_bytes)}, ${w.limits.processes} processes` : '',
    w.idle_seconds ? `${w.idle_seconds} s without a session` : 'never'])).children);
}

async function refreshPolicies() {
  const {domains, preset, refused} = await get('/v1/policies');
  const names = Object.keys(domains);
  byId('preset').textContent = [preset ? `preset ${preset}` : 'no preset', ...Object.entries(refused).map(([d, why]) => `${d} is refused: ${why}`)].join('; ');
  for (const [id, first] of [['policy-a', null], ['policy-b', '(none)']]) {
    const select = byId(id), before = select.value;
    select.replaceChildren(...[first, ...names].filter(Boolean).map((n) => make('option', {}, n)));
    if (before && names.includes(before)) select.value = before;
  }
  await showPolicy();
}

// Flattens an explanation to lines such as "reads /usr", so that two explanations compare as sets.
function lines(value, path = '') {
  if (value === null || typeof value !== 'object') return [`${path}: ${value}`];
  if (Array.isArray(value)) return value.flatMap((v) => (typeof v === 'object' ? lines(v, path) : [`${path}: ${v}`]));
  if (typeof value.path === 'string') {
    const {path: where, ...rest} = value;
    return [`${path} ${where}: ${Object.entries(rest).map(([k, v]) => `${k} ${JSON.stringify(v)}`).join(', ')}`];
  }
  return Object.entries(value).flatMap(([k, v]) => lines(v, path ? `${path} / ${k}` : k));
}

async function showPolicy() {
  const a = byId('policy-a').value, b = byId('policy-b').value;
  if (!a) return;
  const {score, ...one} = await get(`/v1/policies/${encodeURIComponent(a)}`);
  if (!b || b === '(none)') {
    byId('policy').replaceChildren(posture(score), ...explanation(one));
    return;
  }
  const {score: otherScore, ...other} = await get(`/v1/policies/${encodeURIComponent(b)}`);
  const left = new Set(lines(one)), right = new Set(lines(other));
  const column = (title, list, kind) => make('div', {class: 'card'}, make('h2', {}, title),
      make('ul', {}, ...list.map((text) => make('li', {class: kind}, text))), list.length ? null : 'nothing');
  byId('policy').replaceChildren(posture(score, a), posture(otherScore, b), column(`Only in ${a}`, [...left].filter((l) => !right.has(l)), 'good'),
                                 column(`Only in ${b}`, [...right].filter((l) => !left.has(l)), 'warn'));
}

// As under "score" in `caisson policy explain`: it compares policies and is not a probability.
function posture(score, name) {
  const kind = score.value >= 75 ? 'good' : score.value >= 50 ? 'warn' : 'bad';
  return make('div', {class: 'card score'}, make('h2', {}, name ? `Score of ${name} ` : 'Score ', badge(`${score.value} of ${score.of}`, kind)),
      make('ul', {}, ...score.deductions.map((d) => make('li', {}, `−${d.points} ${d.field}: ${d.reason}`))),
      score.deductions.length ? null : 'nothing was taken off');
}

function explanation(policy) {
  return Object.entries(policy).map(([name, value]) => make('div', {class: 'card'}, make('h2', {}, name.replaceAll('_', ' ')),
      value !== null && typeof value === 'object'
          ? make('ul', {}, ...lines(value).map((text) => make('li', {}, text.replace(/^: /, ''))))
          : String(value)));
}

// Why it was permitted or refused, by the words of the audit log and the reason that the policy gives.
const decision = (c) => [c.refused ? c.refusal : c.error && `failed: ${c.error}`, c.rule >= 0 && `rule ${c.rule}`, c.why, c.detail].filter(Boolean).join(' · ');

// Host, reason and detail come from sessions and servers: they are text here, whatever they say.
async function refreshConnections() {
  const {connections} = await get('/v1/proxy/connections');
  byId('no-connections').hidden = connections.length > 0;
  byId('connections').replaceChildren(...(connections.length ? table(['time', 'session', 'host', 'port', 'bytes up, down', 'decided by'], connections.map((c) => [
    clock(Date.parse(c.time)), short(c.session ?? 'not known', 24),
    [badge(c.alarm ? 'alarm' : c.refused ? 'refused' : c.error ? 'failed' : 'connected', c.alarm || c.refused ? 'bad' : c.error ? 'warn' : 'good'), ' ', make('code', {}, short(c.host ?? '', 255))],
    c.port ?? '', c.refused ? '' : `${size(c.up)}, ${size(c.down)}`, short(decision(c), 300)])).children : []));
}

const decideAsk = (path, body) => post(path, body).then((d) => (d.rule ? say(`into "egress" of ${d.domain}: ${JSON.stringify(d.rule)}`) : refreshAsks()));

// Where the policy leaves it to the operator alone, the buttons say so when they are used.
async function refreshAsks() {
  const {asked, granted} = await get('/v1/proxy/asks');
  const place = (one) => make('code', {}, `${short(one.host, 255)}:${one.port}`);
  const ways = [['once', {for: 'once'}], ['session', {for: 'session'}], ['1 hour', {for: 'time', seconds: 3600}], ['policy', {for: 'policy'}]];
  keepFocus(byId('asks'), () => byId('asks').replaceChildren(...(asked.length + granted.length ? table(['asked by', 'for', 'times', ''], [
    ...asked.map((a) => [short(a.session ?? a.domain, 24), [place(a), ` ${short(a.programs.join(', '), 80)}`], a.times, [
      ...ways.filter(([name]) => name !== 'session' || a.session).map(([name, body]) => action(`allow: ${name}`, () => decideAsk(`/v1/proxy/asks/${a.id}/allow`, body))),
      action('deny', () => decideAsk(`/v1/proxy/asks/${a.id}/deny`))]]),
    ...granted.map((g) => [short(g.session ?? `all of ${g.domain}`, 24), place(g),
      [badge(g.used ? 'used' : g.once ? 'once' : 'allowed', 'warn'), ` ${g.seconds_left} s`],
      [action('revoke', () => get(`/v1/proxy/grants/${g.id}`, {method: 'DELETE'}).then(refreshAsks))]])]).children : [])));
  byId('no-asks').hidden = asked.length + granted.length > 0;
}

async function refreshWalls() {
  const [{statement}] = await Promise.all([get('/v1/attestation'), refreshConnections().catch(say), refreshAsks().catch(say)]);
  byId('boot').replaceChildren('tier ', badge(statement.tier, statement.tier === 'T3' ? 'good' : 'warn'),
                               ` · ${statement.version} · kernel ${statement.kernel.release} · since ${statement.boot.started.slice(0, 19)}Z`);
  byId('walls').replaceChildren(
      make('div', {class: 'card'}, make('h2', {}, 'Not stopped'), residual(statement.residual)),
      make('div', {class: 'card'}, make('h2', {}, 'What would raise the tier'),
           statement.why_not_higher.length ? make('ul', {}, ...statement.why_not_higher.map((w) => make('li', {}, w))) : 'nothing: this is the highest'),
      ...statement.policies.map((p) => make('div', {class: 'card'}, make('h2', {}, p.domain, ' ', badge(p.state, {ready: 'good', refused: 'bad'}[p.state])),
          p.state !== 'ready' ? p.why ?? 'made ready at its first use' : walls(Object.entries(p.mechanisms).map(([name, state]) => ({name, state}))))));
}
