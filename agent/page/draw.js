// Drawings as SVG. Sizes are attributes, because the content security policy permits no style attribute; colours come from the
// classes of page.css, so that they follow dark and light.
function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== null) node.setAttribute(key, attribute(key, value));
  node.append(...children.filter(Boolean).map((c) => (c instanceof Node ? c : plain(c))));
  return node;
}

const titled = (node, text) => (node.prepend(svg('title', {}, text)), node);

// One lane for each row {name, from, to, marks, kind}, times in ms; marks are refusals. A lane of `onOpen` is a link by keyboard, too.
function timeline(rows, from, to, onOpen) {
  const kWidth = 1000, kName = 210, kLane = 22, kTop = 20;
  const at = (time) => kName + (Math.min(Math.max(time, from), to) - from) / Math.max(to - from, 1) * (kWidth - kName);
  const picture = svg('svg', {viewBox: `0 0 ${kWidth} ${kTop + rows.length * kLane + 4}`, class: 'timeline', role: 'group', 'aria-label': 'Sessions over time'});
  for (let i = 0; i <= 4; i++) {
    const time = from + (to - from) * i / 4, x = at(time);
    picture.append(svg('line', {x1: x, x2: x, y1: kTop - 4, y2: kTop + rows.length * kLane, class: 'grid'}),
                   svg('text', {x, y: 12, class: 'tick', 'text-anchor': i === 0 ? 'start' : i === 4 ? 'end' : 'middle'}, clock(time)));
  }
  rows.forEach((row, i) => {
    const y = kTop + i * kLane;
    const refused = row.marks.length ? `, ${plural(row.marks.length, 'refusal')}` : '';
    const lane = svg('g', {class: `lane ${row.kind}`, role: 'button', tabindex: '0', 'aria-label': `${short(row.name, 30)}, from ${clock(row.from)}${refused}`},
        svg('rect', {x: 0, y, width: kWidth, height: kLane, class: 'hit'}),
        svg('text', {x: 2, y: y + 15, class: 'name'}, short(row.name, 30)),
        svg('rect', {x: at(row.from), y: y + 6, width: Math.max(at(row.to) - at(row.from), 3), height: 10, rx: 3, class: 'bar'}),
        ...row.marks.map((time) => svg('path', {d: `M${at(time)} ${y + 3}v16`, class: 'mark'})));
    const open = () => onOpen(row);
    lane.addEventListener('click', open);
    lane.addEventListener('keydown', (event) => event.key === 'Enter' && open());
    picture.append(titled(lane, `${row.name}${refused}`));
  });
  return picture;
}

// A bar of a limit: full at the limit, marked from four fifths on.
function limitBar(label, now, limit, show) {
  const share = limit ? Math.min((now ?? 0) / limit, 1) : 0;
  const text = limit ? `${show(now ?? 0)} of ${show(limit)}` : show(now ?? 0);
  return titled(svg('svg', {viewBox: '0 0 100 8', class: `limit ${share > 0.8 ? 'near' : ''}`, role: 'img', 'aria-label': `${label}: ${text}`, preserveAspectRatio: 'none'},
      svg('rect', {x: 0, y: 0, width: 100, height: 8, rx: 2, class: 'room'}),
      svg('rect', {x: 0, y: 0, width: Math.max(share * 100, now ? 1 : 0), height: 8, rx: 2, class: 'used'})), `${label}: ${text}`);
}
