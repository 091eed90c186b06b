// The list of operations, and searching it.
let shown = [];  // {node, words, section}

function entry(path, method, described) {
  const summary = make('summary', {}, make('span', {class: `badge method ${method}`}, method.toUpperCase()), make('span', {class: 'path'}, path),
                       make('span', {class: 'words'}, described.summary ?? ''));
  const inside = make('div');
  const node = make('details', {class: 'operation', id: described.operationId}, summary, inside);
  node.addEventListener('toggle', () => {
    if (node.open && !inside.hasChildNodes()) fill(inside, path, method, described);
  });
  return {node, words: `${method} ${path} ${described.operationId} ${described.summary ?? ''}`.toLowerCase()};
}

function draw() {
  const sections = new Map((spec.tags ?? []).map((tag) => [tag.name, {tag, entries: []}]));
  for (const [path, methods] of Object.entries(spec.paths))
    for (const [method, described] of Object.entries(methods)) {
      const name = described.tags?.[0] ?? 'other';
      if (!sections.has(name)) sections.set(name, {tag: {name}, entries: []});
      sections.get(name).entries.push(entry(path, method, described));
    }
  shown = [];
  const nodes = [...sections.values()].filter(({entries}) => entries.length).map(({tag, entries}) => {
    const section = make('section', {'aria-label': tag.name}, make('h2', {}, tag.name), make('p', {}, tag.description ?? ''), ...entries.map((e) => e.node));
    shown.push(...entries.map((e) => ({...e, section})));
    return section;
  });
  byId('operations').replaceChildren(...nodes);
  filter();
  const wanted = shown.find(({node}) => `#${node.id}` === location.hash);
  if (wanted) wanted.node.open = true, wanted.node.scrollIntoView();
}

function filter() {
  const wanted = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const seen = new Set();
  let count = 0;
  for (const {node, words, section} of shown) {
    node.hidden = !wanted.every((w) => words.includes(w));
    if (!node.hidden) count++, seen.add(section);
  }
  for (const section of byId('operations').children) section.hidden = !seen.has(section);
  byId('count').textContent = `${count} of ${shown.length} operations`;
}

async function load() {
  const answer = await request('/v1/openapi.json');
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.message ?? `the description of the API: ${answer.status}`);
  spec = body;
  byId('boot').textContent = `${spec.info.title} ${spec.info.version}. ${spec.info.description ?? ''}`;
  say(null);
  draw();
}

byId('find').addEventListener('submit', (event) => event.preventDefault());
byId('search').addEventListener('input', filter);
byId('save').addEventListener('click', () => {
  const url = URL.createObjectURL(new Blob([JSON.stringify(spec, null, 1)], {type: 'application/json'}));
  make('a', {href: url, download: 'openapi.json'}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
  event.preventDefault();
  byId('search').focus();
});
load().catch(say);
