// One operation: its parameters and body as a form, and its possible answers.
function parameterRow(parameter) {
  const schema = resolve(parameter.schema);
  const choices = withoutNull(schema)[0]?.enum;
  const attributes = {'aria-label': parameter.name, placeholder: schema.default === undefined ? undefined : String(schema.default)};
  const input = choices ? make('select', attributes, make('option', {value: ''}, ''), ...choices.map((c) => make('option', {}, c)))
                        : make('input', {...attributes, autocomplete: 'off', spellcheck: 'false'});
  const row = [make('code', {class: parameter.required ? 'needed' : ''}, parameter.name), parameter.in,
               [typeOf(schema), bounds(schema)].filter(Boolean).join('; '), input, parameter.description ?? ''];
  return {row, value: () => ({name: parameter.name, place: parameter.in, value: input.value})};
}

function jsonBody(schema, changed) {
  const area = make('textarea', {'aria-label': 'Body, JSON', spellcheck: 'false', class: 'body'});
  area.value = JSON.stringify(sample(schema), null, 2);
  area.addEventListener('input', changed);
  const use = (name, field) => {
    try {
      area.value = JSON.stringify({...JSON.parse(area.value || '{}'), [name]: sample(field)}, null, 2);
      changed();
    } catch (problem) {
      say(`The body is not JSON: ${problem.message}`);
    }
  };
  return {nodes: [fieldTable(fieldsOf(schema), use), area], value: () => area.value.trim() || undefined};
}

function formBody(schema, changed) {
  const s = resolve(schema);
  const inputs = Object.entries(s.properties ?? {}).map(([name, field]) => {
    const input = make('input', {name, 'aria-label': name, type: resolve(field).format === 'binary' ? 'file' : 'text'});
    input.addEventListener('input', changed);
    return {name, field, input};
  });
  const rows = inputs.map(({name, field, input}) => [make('code', {class: (s.required ?? []).includes(name) ? 'needed' : ''}, name), typeOf(field),
                                                      input, resolve(field).description ?? '']);
  const value = () => {
    const form = new FormData();
    for (const {name, input} of inputs)
      for (const item of input.files ?? (input.value ? [input.value] : [])) form.append(name, item);
    return form;
  };
  return {nodes: [table(['Field', 'Type', 'Value', 'What it is'], rows)], value};
}

function answers(described) {
  const rows = Object.entries(described.responses).map(([status, response]) => {
    const r = resolve(response);
    return [make('code', {}, status), r.description, Object.keys(r.content ?? {}).join(', ')];
  });
  const json = resolve(described.responses['200'])?.content?.['application/json']?.schema;
  const fields = json ? fieldsOf(json) : [];
  return make('details', {}, make('summary', {}, 'Answers'), table(['Status', 'What it says', 'Type'], rows),
              ...(fields.length ? [make('h3', {}, 'Fields of 200'), fieldTable(fields)] : []));
}

// Fills a <details> when it is first opened.
function fill(place, path, method, described) {
  const curl = make('pre', {tabindex: '0', class: 'curl', 'aria-label': 'As a line for curl'});
  const operation = {path, method, inWorkspace: (described.parameters ?? []).some((p) => p.name === 'X-Caisson-Workspace')};
  const changed = () => { curl.textContent = curlOf(requestOf(operation)); };
  const rows = (described.parameters ?? []).filter((p) => p.name !== 'X-Caisson-Workspace').map(parameterRow);
  operation.parameters = () => rows.map((r) => r.value());
  const [kind, media] = Object.entries(described.requestBody?.content ?? {})[0] ?? [];
  const body = !media ? {nodes: [], value: () => undefined} : (kind === 'multipart/form-data' ? formBody : jsonBody)(media.schema, changed);
  operation.body = body.value;

  const go = make('button', {type: 'submit'}, 'Send'), halt = make('button', {type: 'button', hidden: 'hidden'}, 'Stop');
  const bar = make('div', {class: 'bar'}, go, halt);
  if (resolve(described.responses['200'])?.content?.['text/event-stream']) {
    operation.stream = make('input', {type: 'checkbox'});
    bar.append(make('label', {}, operation.stream, ' as a stream of events'));
  }
  const answer = make('div', {class: 'answer', 'aria-live': 'polite'});
  const form = make('form', {class: 'try'}, ...(rows.length ? [make('h3', {}, 'Parameters'), make('div', {class: 'scroll'},
      table(['Name', 'Where', 'Type', 'Value', 'What it is'], rows.map((r) => r.row)))] : []),
      ...(media ? [make('h3', {}, `Body, ${kind}`), ...body.nodes] : []), bar);
  let running = null;
  halt.addEventListener('click', () => running?.abort());
  form.addEventListener('input', changed);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    running?.abort();
    const mine = running = new AbortController();
    halt.hidden = false;
    await send(operation, answer, mine.signal);
    if (running === mine) halt.hidden = true;
  });
  place.append(form, answer, make('h3', {}, 'curl'), curl, answers(described));
  changed();
}
