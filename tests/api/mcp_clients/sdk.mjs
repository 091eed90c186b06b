// The official TypeScript clients: version 1 of the SDK, and version 2 with and without `initialize`. Prints what each saw.
import {Client as First} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport as FirstTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {Client, StreamableHTTPClientTransport} from '@modelcontextprotocol/client';

const url = new URL(process.env.URL_OF_MCP);
const requestInit = {headers: {'X-AIO-API-Key': process.env.KEY}};
const me = {name: 'test', version: '1'};

async function use(client, transport) {
  await client.connect(transport);
  const {tools} = await client.listTools();
  const bash = await client.callTool({name: 'sandbox_execute_bash', arguments: {cmd: 'echo from the SDK'}});
  const wrong = await client.callTool({name: 'sandbox_execute_bash', arguments: {}}).catch((error) => ({error: error.message}));
  const unknown = await client.callTool({name: 'no_such_tool', arguments: {}}).catch((error) => ({error: error.message}));
  const seen = {server: client.getServerVersion()?.name, tools: tools.map(({name}) => name), output: bash.structuredContent?.output, wrong, unknown};
  await client.close();
  return seen;
}

const out = {};
out.first = await use(new First(me), new FirstTransport(url, {requestInit}));
for (const mode of ['legacy', 'auto']) {
  out[mode] = await use(new Client(me, {versionNegotiation: {mode}}), new StreamableHTTPClientTransport(url, {requestInit}));
}
console.log(JSON.stringify(out));
