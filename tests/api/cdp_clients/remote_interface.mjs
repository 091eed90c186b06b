// chrome-remote-interface: asks for the protocol itself, opens a tab and closes it. It sends no header: the key is in each address, also in
// those that the server gives.
import CDP from 'chrome-remote-interface';

const {HOST, PORT, KEY, PAGE} = process.env;
const withKey = (path) => (path.startsWith('/devtools/') ? path : `${path}${path.includes('?') ? '&' : '?'}api_key=${KEY}`);
const options = {host: HOST, port: Number(PORT), alterPath: withKey};
const {domains} = await CDP.Protocol(options);
const target = await CDP.New({...options, url: PAGE});
const client = await CDP({...options, target});
await client.Runtime.enable();
await client.Page.enable();
const evaluate = async (expression) => (await client.Runtime.evaluate({expression, awaitPromise: true, returnByValue: true})).result.value;
await evaluate("new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))");
await evaluate("document.querySelector('#press').click()");
const title = await evaluate('document.title');
const listed = (await CDP.List(options)).some(({id}) => id === target.id);
await client.close();
await CDP.Close({...options, id: target.id});
console.log(JSON.stringify({title, listed, domains: domains.length > 40}));
