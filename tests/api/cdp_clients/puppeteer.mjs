// puppeteer: a tab of its own, a click, a dialog and a request that it answers itself. Prints what it saw.
import puppeteer from 'puppeteer-core';

const {SOCKET, KEY, PAGE, SHARED} = process.env;
const browser = await puppeteer.connect({browserWSEndpoint: SOCKET, headers: {'X-AIO-API-Key': KEY}});
const page = await browser.newPage();
await page.goto(PAGE);
await page.click('#press');
const title = await page.title();
if (!SHARED) page.once('dialog', (dialog) => dialog.accept(`yes to ${dialog.message()}`));
if (!SHARED) await page.click('#ask');
const asked = await page.$eval('#answer', (one) => one.textContent);
await page.setRequestInterception(true);
page.on('request', (request) => request.respond({contentType: 'text/html', body: '<title>of puppeteer</title>'}));
await page.goto('http://nowhere.test/');
const answered = await page.title();
const picture = Buffer.from(await page.screenshot()).subarray(1, 4).toString();
await page.close();
await browser.disconnect();
console.log(JSON.stringify({title, asked, answered, picture}));
