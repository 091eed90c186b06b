// playwright: a context of its own, a click, a dialog, an upload, a download and a trace. Prints what it saw.
import fs from 'node:fs';
import {chromium} from 'playwright-core';

const {ADDRESS, KEY, PAGE, SHARED} = process.env;
const browser = await chromium.connectOverCDP(ADDRESS, {headers: {'X-AIO-API-Key': KEY}});
const context = await browser.newContext();
await context.tracing.start({screenshots: true, snapshots: true});
const page = await context.newPage();
await page.goto(PAGE);
await page.click('#press');
const title = await page.title();
if (!SHARED) page.once('dialog', (dialog) => dialog.accept(`yes to ${dialog.message()}`));
if (!SHARED) await page.click('#ask');
const asked = await page.textContent('#answer');
await page.setInputFiles('#file', {name: 'up.txt', mimeType: 'text/plain', buffer: Buffer.from('uploaded')});
const uploaded = await page.textContent('#answer');
const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
const failure = await download.failure();
const picture = (await page.screenshot()).subarray(1, 4).toString();
const trace = `trace-${process.pid}.zip`;
await context.tracing.stop({path: trace});
const traced = fs.statSync(trace).size > 1000;
fs.unlinkSync(trace);
await context.close();
await browser.close();
console.log(JSON.stringify({title, asked, uploaded, name: download.suggestedFilename(), failure, picture, traced}));
