// Describes schemas of the document in words, and makes a first request. A schema may contain itself: `depth` bounds that.
const kDepth = 6;
let spec = {paths: {}, components: {schemas: {}}};

function resolve(schema) {
  for (let i = 0; i < kDepth && schema?.$ref; ++i)
    schema = schema.$ref.slice(2).split('/').reduce((at, name) => at?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], spec);
  return schema ?? {};
}

const options = (schema) => resolve(schema).anyOf ?? resolve(schema).oneOf;
const withoutNull = (schema) => (options(schema) ?? [schema]).map(resolve).filter((s) => s.type !== 'null');

function typeOf(schema, depth = 0) {
  const s = resolve(schema);
  if (depth > kDepth) return '…';
  if (options(s)) return [...new Set(options(s).map((o) => typeOf(o, depth + 1)))].join(' or ');
  if (s.enum ?? s.const) return [s.enum ?? s.const].flat().map((v) => JSON.stringify(v)).join(', ');
  if (s.type === 'array') return `array of ${typeOf(s.items ?? {}, depth + 1)}`;
  if (s.type === 'object' && !s.properties) return `object of ${typeOf(s.additionalProperties ?? {}, depth + 1)}`;
  return s.format ? `${s.type}, ${s.format}` : s.type ?? 'any';
}

function bounds(schema) {
  return withoutNull(schema).flatMap((s) => [
    s.minimum !== undefined && `at least ${s.minimum}`, s.maximum !== undefined && `at most ${s.maximum}`,
    s.minLength !== undefined && `at least ${s.minLength} characters`, s.maxLength !== undefined && `at most ${s.maxLength} characters`,
  ]).filter(Boolean).join(', ');
}

// Rows of [name, required, schema, level]; the members of a field follow it.
function fieldsOf(schema, prefix = '', depth = 0) {
  const rows = [];
  for (const s of withoutNull(schema)) {
    if (s.type === 'array') rows.push(...fieldsOf(s.items ?? {}, `${prefix}[]`, depth));
    for (const [name, field] of Object.entries(s.properties ?? {})) {
      const path = prefix ? `${prefix}.${name}` : name;
      rows.push([path, (s.required ?? []).includes(name), field]);
      if (depth < kDepth) rows.push(...fieldsOf(field, path, depth + 1));
    }
  }
  return rows;
}

// A first value for a request.
function sample(schema, depth = 0) {
  const [s = {}] = withoutNull(schema);
  if (resolve(schema).default !== undefined) return resolve(schema).default;
  if (s.enum) return s.enum[0];
  if (s.type === 'object' && s.properties && depth < kDepth)
    return Object.fromEntries((s.required ?? []).map((name) => [name, sample(s.properties[name], depth + 1)]));
  return {string: '', boolean: false, integer: s.minimum ?? 0, number: s.minimum ?? 0, array: [], object: {}}[s.type] ?? null;
}

function fieldTable(rows, use) {
  return make('div', {class: 'scroll'}, table(['Field', 'Type', 'Default', 'What it is'], rows.map(([name, required, field]) => {
    const s = resolve(field);
    const label = make('code', {class: required ? 'needed' : ''}, name);
    const top = use && !/[.[]/.test(name);
    const button = top ? make('button', {type: 'button', 'aria-label': `Put ${name} into the body`}, label) : label;
    if (top) button.addEventListener('click', () => use(name, field));
    return [button, [typeOf(field), bounds(field)].filter(Boolean).join('; '),
            s.default !== undefined ? make('code', {}, JSON.stringify(s.default)) : required ? 'required' : '', field.description ?? s.description ?? ''];
  })));
}
