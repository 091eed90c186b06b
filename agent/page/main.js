// Tabs, and the refresh of the visible one. A view that people work in is not drawn anew by the clock.
const kViews = {overview: refreshOverview, files: refreshFiles, terminals: refreshTerminals, ports: refreshPorts, notebooks: refreshNotebooks,
                sessions: refreshSessions, workspaces: refreshWorkspaces, policies: refreshPolicies, walls: refreshWalls};
const kStill = new Set(['files', 'ports', 'notebooks', 'policies']);
const tabs = [...document.querySelectorAll('[role="tab"]')];
let view = '', refreshing = null;

// One refresh at a time: on a slow machine they do not pile up. anew: what one that runs will show is out of date.
async function refresh({anew} = {}) {
  if (document.hidden || (refreshing?.view === view && !anew)) return;
  const mine = refreshing = {view};
  try {
    await kViews[mine.view]();
    say(null);
  } catch (problem) {
    say(problem);
  } finally {
    if (refreshing === mine) refreshing = null;
  }
}

function select(tab, focus = false) {
  view = tab.id.slice(4);
  for (const t of tabs) {
    t.setAttribute('aria-selected', t === tab);
    t.tabIndex = t === tab ? 0 : -1;
    byId(t.getAttribute('aria-controls')).hidden = t !== tab;
  }
  history.replaceState(null, '', `#${view}`);
  if (focus) tab.focus();
  refresh();
}

for (const tab of tabs) {
  tab.addEventListener('click', () => select(tab));
  tab.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) select(tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length], true);
  });
}
keys(byId('sessions'));
keys(byId('ended'));
byId('compare').addEventListener('change', () => showPolicy().catch(say));
document.addEventListener('visibilitychange', () => refresh());
watchFiles();
watchRooms();
watchWorkspace();
refreshWalls().catch(say);
const first = byId(`tab-${location.hash.slice(1) || (location.pathname.startsWith('/caisson') ? 'sessions' : 'overview')}`);
select(tabs.includes(first) ? first : tabs[0]);
setInterval(() => kStill.has(view) || refresh(), kInterval);
