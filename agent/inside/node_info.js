// Lists the packages of a Node.js as JSON.
'use strict';
const fs = require('fs');
const path = require('path');
const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
const places = [`${prefix}/lib/node_modules`, '/usr/local/lib/node_modules', '/usr/share/nodejs', '/usr/share/node_modules'];
const packages = new Map();
const add = (dir, name) => {
  try {
    const {version} = JSON.parse(fs.readFileSync(path.join(dir, name, 'package.json'), 'utf8'));
    if (typeof version === 'string' && !packages.has(name) && packages.size < 2000) packages.set(name, version);
  } catch {
    // Not a package.
  }
};
let global = null;
for (const place of places) {
  let names;
  try {
    names = fs.readdirSync(place);
  } catch {
    continue;
  }
  global ??= place;
  for (const name of names) {
    if (!name.startsWith('@')) {
      add(place, name);
      continue;
    }
    for (const inner of fs.readdirSync(path.join(place, name))) add(place, `${name}/${inner}`);
  }
}
process.stdout.write(JSON.stringify({
  npm: packages.get('npm') ?? '',
  directory: global,
  packages: [...packages].sort().map(([name, version]) => ({name, version})),
}));
