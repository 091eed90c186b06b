// The choice of the workspace whose files, terminals, ports and notebooks are shown, and pages of it in another window.
async function listWorkspaces() {
  const {workspaces} = await get('/v1/workspaces');
  const names = workspaces.map((w) => w.name);
  byId('in-workspace').hidden = names.length < 2;
  if (!names.includes(workspace)) workspace = 'default';
  byId('workspace').replaceChildren(...names.map((name) => make('option', {}, name)));
  byId('workspace').value = workspace;
  return workspaces;
}

function watchWorkspace() {
  byId('workspace').addEventListener('change', (event) => {
    workspace = event.target.value;
    Object.assign(tree, {root: '', open: new Set(), chosen: '', editing: null});
    byId('file').replaceChildren();
    byId('ports').replaceChildren();
    notebook.session = '';
    refresh({anew: true});
  });
  listWorkspaces().catch(say);
}

// Opens a page of ours, or what runs on a port, in another window. A page of a session must not know this one: no opener. Our own
// pages have the login of this one; what runs on a port is opened by a ticket for it alone.
async function openPort(port) {
  window.open(await portAddress(port), '_blank', 'noopener,noreferrer');
}

async function openPage(path) {
  const own = new URL(path, location.href);
  if (chosenWorkspace()) own.searchParams.set('workspace', chosenWorkspace());
  window.open(own, '_blank', 'noopener,noreferrer');
}

function linkTo(name, open) {
  const link = make('button', {class: 'plain', type: 'button'}, name);
  link.addEventListener('click', () => open().catch(say));
  return link;
}
const pageLink = (path, name) => linkTo(name, () => openPage(path));
const portLink = (port) => linkTo(String(port), () => openPort(port));
