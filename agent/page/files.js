// The files of the workspace, by the file API: what it refuses is refused here. A tree that is read as it is opened, previews of
// text and images, upload by drag or button, download, and an editor that does not overwrite another's change unasked.
const kPreviewBytes = 512 * 1024, kImageBytes = 16 * 1024 * 1024, kMostEntries = 1000;
const kImages = /\.(png|jpe?g|gif|webp|bmp|ico|avif|svg)$/i;
const tree = {root: '', open: new Set(), chosen: '', editing: null, picture: ''};

const parentOf = (path) => path.replace(/\/[^/]*$/, '') || '/';

async function refreshFiles() {
  if (!tree.root) tree.root = (await get('/v1/sandbox', {flat: true})).home_dir;
  byId('files-root').value = tree.root;
  const rows = await listing(tree.root, 0);
  keepFocus(byId('tree'), () => byId('tree').replaceChildren(...rows));
}

async function listing(path, depth) {
  let list;
  try {
    list = await post('/v1/file/list', {path, show_hidden: byId('hidden-files').checked, include_size: true, sort_by: 'name'});
  } catch (problem) {
    if (problem.left) throw problem;
    return [make('li', {class: 'hint'}, String(problem.message))];
  }
  const entries = [...list.files].sort((a, b) => b.is_directory - a.is_directory || (a.name < b.name ? -1 : 1));
  const rows = [];
  for (const entry of entries.slice(0, kMostEntries)) {
    rows.push(entryRow(entry, depth));
    if (entry.is_directory && tree.open.has(entry.path)) rows.push(...await listing(entry.path, depth + 1));
  }
  if (entries.length > kMostEntries) rows.push(make('li', {class: 'hint'}, `and ${plural(entries.length - kMostEntries, 'entry')} more`));
  return rows;
}

// A name may hold line breaks, too: all of it that cannot be seen is shown as a number, and it is isolated.
function entryRow(entry, depth) {
  const open = tree.open.has(entry.path);
  const node = make('li', {role: 'treeitem', tabindex: '0', id: `f-${entry.path}`, 'aria-level': depth + 1, class: `depth-${Math.min(depth, 9)}`,
                           'aria-expanded': entry.is_directory ? open : undefined, 'aria-selected': entry.path === tree.chosen},
                    make('span', {'aria-hidden': 'true'}, entry.is_directory ? (open ? '▾ ' : '▸ ') : '  '), make('bdi', {}, visible(entry.name)),
                    entry.is_directory ? '' : make('small', {}, ` ${size(entry.size)}`));
  node.addEventListener('click', () => openEntry(entry).catch(say));
  node.addEventListener('keydown', (event) => treeKey(event, node, entry));
  return node;
}

function treeKey(event, node, entry) {
  const to = {ArrowDown: node.nextElementSibling, ArrowUp: node.previousElementSibling}[event.key];
  if (to) to.focus();
  else if (event.key === 'Enter' || (entry.is_directory && (event.key === 'ArrowRight') !== tree.open.has(entry.path) && /^Arrow(Right|Left)$/.test(event.key)))
    openEntry(entry).catch(say);
  else return;
  event.preventDefault();
}

async function openEntry(entry) {
  if (tree.editing && tree.editing.text.value !== tree.editing.read && !confirm('Drop the changes that are not saved?')) return;
  tree.chosen = entry.path;
  if (entry.is_directory && !tree.open.delete(entry.path)) tree.open.add(entry.path);
  if (!entry.is_directory) await showFile(entry);
  await refreshFiles();
}

const downloadPath = (path) => `/v1/file/download?path=${encodeURIComponent(path)}`;

async function showFile(entry) {
  tree.editing = null;
  if (tree.picture) URL.revokeObjectURL(tree.picture);
  tree.picture = '';
  const actions = make('div', {class: 'actions'}, action('Download', () => download(entry.path)), action('Delete', () => remove(entry.path)));
  const place = make('div', {});
  byId('file').replaceChildren(make('h2', {}, make('bdi', {}, visible(entry.path))),
                               facts([['size', size(entry.size)], ['changed', entry.modified_time?.slice(0, 19).replace('T', ' ')]]), actions, place);
  if (kImages.test(entry.name) && entry.size <= kImageBytes) return showImage(entry, place);
  if (entry.size > kPreviewBytes) return place.append(make('p', {class: 'hint'}, `Larger than ${size(kPreviewBytes)}: download it to see it.`));
  let read;
  try {
    read = (await post('/v1/file/read', {file: entry.path})).content;
  } catch (problem) {
    return place.append(make('p', {class: 'hint'}, `It cannot be shown as text: ${problem.message}`));
  }
  const text = make('textarea', {id: 'text', spellcheck: 'false', 'aria-label': 'Content of the file', dir: 'ltr'});
  text.value = read;
  tree.editing = {path: entry.path, read: text.value, original: read, text};
  actions.prepend(action('Save', () => save(false)));
  // The text itself must stay as it is: it will be saved.
  if (visible(read.replace(/[\r\n\t]/g, '')) !== read.replace(/[\r\n\t]/g, ''))
    place.append(make('p', {id: 'unseen', class: 'bad'}, 'This text has characters that cannot be seen or change its direction: its bytes may be in another order than it shows.'));
  place.append(text, make('p', {id: 'saved', role: 'status', class: 'hint'}));
}

async function showImage(entry, place) {
  const answer = await request(downloadPath(entry.path));
  if (!answer.ok) return place.append(make('p', {class: 'hint'}, 'It cannot be read.'));
  // A picture has no origin and runs nothing: an <img> carries out no script of an SVG either.
  const type = /\.svg$/i.test(entry.name) ? 'image/svg+xml' : 'application/octet-stream';
  tree.picture = URL.createObjectURL(new Blob([await answer.arrayBuffer()], {type}));
  place.append(make('img', {src: tree.picture, alt: visible(entry.name), class: 'preview'}));
}

// The file is read again before it is written: what another wrote meanwhile is shown, not lost.
async function save(anyway) {
  const {path, original, text} = tree.editing;
  const status = byId('saved');
  const now = await post('/v1/file/read', {file: path}).then((f) => f.content, () => null);
  if (!anyway && now !== original) {
    status.replaceChildren(now === null ? 'The file is gone. ' : 'The file was changed by another since it was opened. ',
                           action('Write mine', () => save(true)), now === null ? '' : action('Load theirs', () => loadTheirs(now)));
    return;
  }
  await post('/v1/file/write', {file: path, content: text.value});
  Object.assign(tree.editing, {read: text.value, original: text.value});
  status.replaceChildren(`Saved at ${clock(Date.now())}.`);
  await refreshFiles();
}

function loadTheirs(content) {
  tree.editing.text.value = content;
  Object.assign(tree.editing, {read: tree.editing.text.value, original: content});
  byId('saved').replaceChildren('');
}

async function download(path) {
  const answer = await request(downloadPath(path));
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const address = URL.createObjectURL(await answer.blob());
  make('a', {href: address, download: visible(path.split('/').pop())}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

async function remove(path) {
  if (!confirm(`Delete ${visible(path)}?`)) return;
  const done = await post('/v1/bash/exec', {command: `rm -f -- ${quoted(path)}`});
  if (done.exit_code !== 0) throw new Error(done.stderr || `the exit code is ${done.exit_code}`);
  byId('file').replaceChildren(make('p', {class: 'hint'}, 'Deleted.'));
  tree.editing = null;
  await refreshFiles();
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function upload(files) {
  const folder = tree.open.has(tree.chosen) ? tree.chosen : tree.chosen ? parentOf(tree.chosen) : tree.root;
  for (const file of files) {
    const form = new FormData();
    form.append('path', `${folder}/${file.name}`);
    form.append('file', file);
    const answer = await request('/v1/file/upload', {method: 'POST', body: form});
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok || body.success === false) throw new Error(`${file.name}: ${body.message ?? answer.status}`);
  }
  await refreshFiles();
}

function watchFiles() {
  const zone = byId('view-files');
  for (const kind of ['dragover', 'dragleave', 'drop'])
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle('dropping', kind === 'dragover');
      if (kind === 'drop') upload(event.dataTransfer.files).catch(say);
    });
  byId('upload').addEventListener('change', (event) => upload(event.target.files).catch(say).finally(() => (event.target.value = '')));
  byId('hidden-files').addEventListener('change', () => refreshFiles().catch(say));
  byId('files-root').addEventListener('change', (event) => {
    tree.root = event.target.value || '/';
    refreshFiles().catch(say);
  });
}
