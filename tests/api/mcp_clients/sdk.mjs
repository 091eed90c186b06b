// The official TypeScript clients: version 1 of the SDK, and version 2 with and without `initialize`. Prints what each saw.
import {Client as First} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport as FirstTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {ElicitRequestSchema} from '@modelcontextprotocol/sdk/types.js';
import {Client, StreamableHTTPClientTransport} from '@modelcontextprotocol/client';

const url = new URL(process.env.URL_OF_MCP);
const requestInit = {headers: {'X-AIO-API-Key': process.env.KEY}};
const me = {name: 'test', version: '1'};
const capabilities = {elicitation: {}};

// What a person would enter into the form.
const answer = ({params}) => ({
  action: 'accept',
  content: Object.fromEntries(Object.keys(params.requestedSchema.properties).map((name) => [name, 'Ada'])),
});

// call(client, request, onprogress): the versions differ in where options stand. asking: a tool that has a question.
async function use(client, transport, call, asking) {
  await client.connect(transport);
  const {tools} = await client.listTools();
  const bash = await client.callTool({name: 'sandbox_execute_bash', arguments: {cmd: 'echo from the SDK'}});
  const wrong = await client.callTool({name: 'sandbox_execute_bash', arguments: {}}).catch((error) => ({error: error.message}));
  const unknown = await client.callTool({name: 'no_such_tool', arguments: {}}).catch((error) => ({error: error.message}));
  const progress = [];
  await call(client, {name: 'every_test_tool_with_progress', arguments: {}}, (told) => progress.push(told.progress));
  const answered = await client.callTool({name: asking, arguments: {message: 'Who are you?'}});
  const seen = {
    server: client.getServerVersion()?.name, tools: tools.map(({name}) => name), output: bash.structuredContent?.output, wrong, unknown,
    progress, answered: answered.content[0].text,
  };
  await client.close();
  return seen;
}

const out = {};
const first = new First(me, {capabilities});
first.setRequestHandler(ElicitRequestSchema, answer);
out.first = await use(first, new FirstTransport(url, {requestInit}),
  (client, request, onprogress) => client.callTool(request, undefined, {onprogress}), 'every_test_elicitation');
const asking = {legacy: 'every_test_elicitation', auto: 'newest_test_input_required_result_elicitation'};
for (const mode of ['legacy', 'auto']) {
  const client = new Client(me, {capabilities, versionNegotiation: {mode}});
  client.setRequestHandler('elicitation/create', answer);
  out[mode] = await use(client, new StreamableHTTPClientTransport(url, {requestInit}),
    (client, request, onprogress) => client.callTool(request, {onprogress}), asking[mode]);
}
console.log(JSON.stringify(out));
