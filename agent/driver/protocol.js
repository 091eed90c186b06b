// The operations of the driver: the members of each request, and who carries it out. agent/frames/page_protocol.h has the same names for
// the agent; a test compares the two. A member is name, or name: its type; "?" after the type: it may be missing or null.
'use strict';

const {invalid} = require('./failure');

// page: it needs the current tab, brought to the front. tabs: its answer tells itself what becomes of tabs.
const kOperations = {
  info: {members: {}},
  navigate: {page: true, members: {url: 'text', wait_until: 'text?'}},
  back: {page: true, members: {}},
  forward: {page: true, members: {}},
  reload: {page: true, members: {}},
  click: {page: true, members: {selector: 'text?', index: 'integer?', x: 'number?', y: 'number?', button: 'text?', click_count: 'integer?'}},
  fill: {page: true, members: {selector: 'text?', index: 'integer?', text: 'text'}},
  type: {page: true, members: {text: 'text', delay: 'number?'}},
  press_key: {page: true, members: {key: 'text'}},
  hot_key: {page: true, members: {keys: 'texts'}},
  hover: {page: true, members: {selector: 'text?', index: 'integer?', x: 'number?', y: 'number?'}},
  select_option: {page: true, members: {selector: 'text', value: 'text?', label: 'text?', index: 'integer?'}},
  check: {page: true, members: {selector: 'text'}},
  uncheck: {page: true, members: {selector: 'text'}},
  upload_file: {page: true, members: {selector: 'text', files: 'texts?', contents: 'objects?'}},
  fill_form: {page: true, members: {items: 'objects'}},
  scroll: {page: true, members: {direction: 'text?', amount: 'number?'}},
  scroll_to: {page: true, members: {x: 'number?', y: 'number?'}},
  scroll_to_element: {page: true, members: {selector: 'text'}},
  screenshot: {page: true, members: {full_page: 'flag?', format: 'text?', quality: 'integer?', selector: 'text?', index: 'integer?'}},
  record: {members: {action: 'text?', duration: 'number?', fps: 'integer?', quality: 'integer?'}},
  html: {page: true, members: {outer: 'flag?'}},
  text: {page: true, members: {}},
  markdown: {page: true, members: {}},
  elements: {page: true, members: {}},
  console: {members: {clear: 'flag?'}},
  console_export: {members: {clear: 'flag?'}},
  evaluate: {page: true, members: {expression: 'text'}},
  find_text: {page: true, members: {keyword: 'text'}},
  wait: {
    page: true,
    members: {type: 'text', selector: 'text?', state: 'text?', url: 'text?', expression: 'text?', polling: 'number?', url_pattern: 'text?',
      duration_ms: 'number?'},
  },
  tabs: {members: {}},
  tab_create: {members: {url: 'text?'}, tabs: true},
  tab_close: {members: {index: 'integer'}, tabs: true},
  tab_activate: {members: {index: 'integer'}, tabs: true},
  cookies: {members: {urls: 'texts?'}},
  cookies_set: {members: {cookies: 'objects'}},
  cookies_clear: {members: {}},
  state_save: {members: {}, tabs: true},
  state_load: {members: {path: 'text?'}, tabs: true},
  headers: {members: {headers: 'object'}},
  scoped_headers: {members: {origin: 'text', headers: 'object'}},
  route_add: {members: {url_pattern: 'text', response: 'object?', abort: 'flag?'}},
  route_remove: {members: {url_pattern: 'text'}},
  requests: {members: {filter: 'text?', limit: 'integer?'}},
  export_har: {members: {}},
  captcha_detect: {page: true, members: {}},
  captcha_wait: {page: true, members: {poll_interval: 'number?'}},
  downloads: {members: {}},
};

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const kTypes = {
  text: (value) => typeof value === 'string',
  texts: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  integer: (value) => Number.isSafeInteger(value),
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  flag: (value) => typeof value === 'boolean',
  object: isObject,
  objects: (value) => Array.isArray(value) && value.every(isObject),
};

// The row of an operation and its arguments; null ones are left out.
function parse(head) {
  if (!Object.hasOwn(kOperations, head.op)) throw invalid(`there is no operation '${String(head.op).slice(0, 50)}'`);
  const row = kOperations[head.op];
  const values = {};
  for (const [name, value] of Object.entries(head)) {
    if (['id', 'op', 'timeout_ms', 'bytes'].includes(name) || value === null) continue;
    if (!Object.hasOwn(row.members, name)) throw invalid(`${head.op} takes no member '${name.slice(0, 50)}'`);
    const type = row.members[name].replace('?', '');
    if (!kTypes[type](value)) throw invalid(`${name} must be of type ${type}`);
    values[name] = value;
  }
  for (const [name, type] of Object.entries(row.members)) {
    if (!type.endsWith('?') && !(name in values)) throw invalid(`${name} is missing`);
  }
  return {row, values};
}

module.exports = {kOperations, parse};
