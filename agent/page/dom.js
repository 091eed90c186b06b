// The document. Text only ever enters as text: what sessions write is never read as HTML.
const byId = (id) => document.getElementById(id);

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key === 'class') node.className = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

const badge = (text, kind = '') => make('span', {class: `badge ${kind}`}, text);

function facts(pairs) {
  const list = make('dl');
  for (const [name, value] of pairs)
    if (value !== undefined && value !== null && value !== '') list.append(make('dt', {}, name), make('dd', {}, ...[value].flat()));
  return list;
}

function table(head, rows) {
  return make('table', {}, make('thead', {}, make('tr', {}, ...head.map((h) => make('th', {scope: 'col'}, h)))),
              make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((cell) => make('td', {}, ...[cell].flat()))))));
}

function size(bytes) {
  if (bytes === undefined || bytes === null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let n = 0;
  while (bytes >= 1024 && n < 4) bytes /= 1024, n++;
  return `${bytes < 10 && n ? bytes.toFixed(1) : Math.round(bytes)} ${units[n]}`;
}

function use(label, now, limit, show = String) {
  if (!limit) return `${show(now)}`;
  return [make('meter', {min: 0, max: limit, high: limit * 0.8, value: Math.min(now ?? 0, limit), 'aria-label': label}),
          ` ${show(now ?? 0)} of ${show(limit)}`];
}

const kWallKinds = {enforced: 'good', unavailable: 'bad', disabled_by_policy: 'warn'};
function walls(mechanisms) {
  return make('ul', {class: 'walls'}, ...mechanisms.map((m) => make('li', {}, make('span',
      {class: `badge ${kWallKinds[m.state] ?? 'warn'}`, title: [m.state.replaceAll('_', ' '), m.detail].filter(Boolean).join(': ')},
      `${m.name}${m.state === 'enforced' ? '' : ` ${m.state.replaceAll('_', ' ')}`}`))));
}

function residual(list) {
  return list.length ? make('ul', {}, ...list.map((r) => make('li', {}, r.what))) : 'nothing known';
}

function say(problem) {
  byId('problem').hidden = !problem;
  byId('problem').textContent = problem ? String(problem.message ?? problem) : '';
}
