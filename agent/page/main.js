// Tabs, and refreshing what is seen.
const kViews = {sessions: refreshSessions, workspaces: refreshWorkspaces, policies: refreshPolicies, walls: refreshWalls};
const tabs = [...document.querySelectorAll('[role="tab"]')];
let view = 'sessions';

async function refresh() {
  if (document.hidden) return;
  try {
    await kViews[view]();
    say(null);
  } catch (problem) {
    say(problem);
  }
}

function select(tab, focus = false) {
  view = tab.id.slice(4);
  for (const t of tabs) {
    t.setAttribute('aria-selected', t === tab);
    t.tabIndex = t === tab ? 0 : -1;
    byId(t.getAttribute('aria-controls')).hidden = t !== tab;
  }
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
document.addEventListener('visibilitychange', refresh);
refreshWalls().catch(say);
refresh();
setInterval(() => view !== 'policies' && refresh(), kInterval);
