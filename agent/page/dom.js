// The document. Text enters only as text nodes: output of sessions is never parsed as HTML.
const byId = (id) => document.getElementById(id);

// Characters that cannot be seen, or that change the direction of the text around them, are shown as numbers: what a session wrote can
// neither look like something else nor rearrange the words beside it. In a text, line breaks and tabs stay.
const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
const visible = (name) => name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, escaped);
const plain = (text) => String(text).replace(/[^\n\t]+/g, visible);
const kSpoken = new Set(['title', 'aria-label', 'alt']);
const attribute = (name, value) => (kSpoken.has(name) ? plain(value) : value);

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key === 'class') node.className = value;
    else node.setAttribute(key, attribute(key, value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((c) => (c instanceof Node ? c : plain(c))));
  return node;
}

const plural = (n, name) => `${n} ${n === 1 ? name : name.endsWith('y') ? `${name.slice(0, -1)}ies` : `${name}s`}`;
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const clock = (time) => new Date(time).toISOString().slice(11, 19);

function action(name, act) {
  const button = make('button', {type: 'button'}, name);
  button.addEventListener('click', () => Promise.resolve(act()).catch(say));
  return button;
}

// Draws anew what has the focus, and gives the focus back to the node of the same id or label.
function keepFocus(place, draw) {
  const before = place.contains(document.activeElement) ? document.activeElement : null;
  draw();
  if (!before) return;
  const label = before.getAttribute('aria-label');
  const same = (node) => (before.id ? node.id === before.id : label && node.getAttribute('aria-label') === label);
  [...place.querySelectorAll('[tabindex], button, a')].find(same)?.focus({preventScroll: true});
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
  if (problem?.left) return;  // of a workspace that is no longer chosen
  byId('problem').hidden = !problem;
  byId('problem').textContent = problem ? plain(problem.message ?? problem) : '';
}
