// Every operation of bash, shell, file, jupyter, code, nodejs and sandbox, as a TypeScript program calls them: requests are checked by
// the compiler against types that openapi-typescript makes of the contract, responses are written to stdout, a line of JSON each, for
// test_javascript.py to validate. Like the official JavaScript SDK it uses fetch, percent-encodes paths, and uploads FormData.
import createClient from "openapi-fetch";
import type { paths } from "./contract.js";

const [url, key, place] = process.argv.slice(2) as [string, string, string];
const recorded: typeof fetch = async (input) => {
  const request = input as Request;
  const answer = await fetch(request);
  const copy = answer.clone();
  const json = (answer.headers.get("content-type") ?? "").startsWith("application/json");
  const body = json ? await copy.json() : (await copy.arrayBuffer()).byteLength;
  console.log(JSON.stringify({ method: request.method, path: new URL(request.url).pathname, status: answer.status, json, body }));
  return answer;
};
const api = createClient<paths>({ baseUrl: url, headers: { "X-AIO-API-Key": key }, fetch: recorded });

function data<T>(answer: { data?: { data?: T | null; success?: boolean }; error?: unknown }): T {
  if (!answer.data?.success) throw new Error(JSON.stringify(answer));
  return answer.data.data as T;
}

async function bash() {
  const session = data(await api.POST("/v1/bash/sessions/create", { body: {} })).session_id;
  const done = data(await api.POST("/v1/bash/exec", { body: { command: "echo $((6 * 7))", session_id: session } }));
  if (done.stdout !== "42\n") throw new Error(JSON.stringify(done));
  await api.POST("/v1/bash/exec", { body: { command: "read x; echo got $x", session_id: session, async_mode: true } });
  data(await api.POST("/v1/bash/write", { body: { session_id: session, input: "line\n" } }));
  data(await api.POST("/v1/bash/output", { body: { session_id: session, wait: true, wait_timeout: 10 } }));
  await api.POST("/v1/bash/exec", { body: { command: "sleep 60", session_id: session, async_mode: true } });
  data(await api.POST("/v1/bash/kill", { body: { session_id: session, signal: "SIGKILL" } }));
  data(await api.GET("/v1/bash/sessions"));
  await api.POST("/v1/bash/sessions/{session_id}/close", { params: { path: { session_id: session } } });
}

async function shell() {
  const session = data(await api.POST("/v1/shell/sessions/create", { body: {} })).session_id;
  data(await api.POST("/v1/shell/exec", { body: { id: session, command: "read x; echo got $x", async_mode: true } }));
  data(await api.POST("/v1/shell/write", { body: { id: session, input: "line", press_enter: true } }));
  data(await api.POST("/v1/shell/wait", { body: { id: session, seconds: 5 } }));
  data(await api.POST("/v1/shell/view", { body: { id: session } }));
  await api.POST("/v1/shell/exec", { body: { id: session, command: "sleep 60", async_mode: true } });
  await api.POST("/v1/shell/kill", { body: { id: session } });
  await api.POST("/v1/shell/sessions/update", { body: { id: session, no_change_timeout: 10 } });
  await api.GET("/v1/shell/terminal-url");
  await api.GET("/v1/shell/sessions/stats");
  await api.GET("/v1/shell/sessions");
  await api.DELETE("/v1/shell/sessions/{session_id}", { params: { path: { session_id: session } } });
  await api.DELETE("/v1/shell/sessions");
}

async function file() {
  const path = `${place}/a b.txt`;
  data(await api.POST("/v1/file/write", { body: { file: path, content: "one\ntwo\n" } }));
  data(await api.POST("/v1/file/read", { body: { file: path } }));
  data(await api.POST("/v1/file/replace", { body: { file: path, old_str: "two", new_str: "2" } }));
  data(await api.POST("/v1/file/search", { body: { file: path, regex: "o" } }));
  data(await api.POST("/v1/file/find", { body: { path: place, glob: "*.txt" } }));
  data(await api.POST("/v1/file/grep", { body: { path: place, pattern: "one" } }));
  data(await api.POST("/v1/file/glob", { body: { path: place, pattern: "**/*" } }));
  data(await api.POST("/v1/file/list", { body: { path: place } }));
  data(await api.POST("/v1/file/str_replace_editor", { body: { command: "view", path } }));
  await api.POST("/v1/file/upload", {
    body: { file: "", path: `${place}/up` },
    bodySerializer: () => {
      const form = new FormData();
      form.append("path", `${place}/up`);
      form.append("file", new Blob(["bytes"]), "upload");
      return form;
    },
  });
  await api.GET("/v1/file/download", { params: { query: { path } }, parseAs: "arrayBuffer" });
  // The contract has no schema for what these answer.
  const made = (await api.POST("/v1/file/watch", { body: { path: place } })).data as { data: { watcher_id: string } };
  const watcher = made.data.watcher_id;
  await api.POST("/v1/file/write", { body: { file: `${place}/new`, content: "x" } });
  await api.POST("/v1/file/watch/{watcher_id}/poll", { params: { path: { watcher_id: watcher } }, body: {} });
  await api.GET("/v1/file/watch");
  const stop = new AbortController();
  const events = await fetch(`${url}/v1/file/watch/${encodeURIComponent(watcher)}/events`, {
    headers: { "X-AIO-API-Key": key, Accept: "text/event-stream" },
    signal: stop.signal,
  });
  console.log(JSON.stringify({ method: "GET", path: `/v1/file/watch/${watcher}/events`, status: events.status, json: false, body: 0 }));
  stop.abort();
  await api.DELETE("/v1/file/watch/{watcher_id}", { params: { path: { watcher_id: watcher } } });
  const waiting = api.POST("/v1/file/watch/wait", { body: { path: place, timeout: 10 } });
  const writing = setInterval(() => void fetch(`${url}/v1/bash/exec`, {
    method: "POST",
    headers: { "X-AIO-API-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify({ command: `date >> '${place}/later'` }),
  }).catch(() => {}), 300);
  await waiting;
  clearInterval(writing);
}

async function jupyter() {
  data(await api.GET("/v1/jupyter/info"));
  const session = data(await api.POST("/v1/jupyter/sessions/create", { body: {} })).session_id;
  const done = data(await api.POST("/v1/jupyter/execute", { body: { code: "6 * 7", session_id: session } }));
  if (!JSON.stringify(done.outputs).includes("42")) throw new Error(JSON.stringify(done));
  data(await api.GET("/v1/jupyter/sessions"));
  await api.DELETE("/v1/jupyter/sessions/{session_id}", { params: { path: { session_id: session } } });
  await api.DELETE("/v1/jupyter/sessions");
}

async function code() {
  data(await api.GET("/v1/code/info"));
  const python = data(await api.POST("/v1/code/execute", { body: { language: "python", code: "print(6 * 7)" } }));
  if (python.stdout !== "42\n") throw new Error(JSON.stringify(python));
  data(await api.POST("/v1/code/execute", { body: { language: "javascript", code: "console.log(6 * 7)" } }));
}

async function nodejs() {
  data(await api.GET("/v1/nodejs/info"));
  const session = data(await api.POST("/v1/nodejs/sessions", { body: {} })).session_id;
  data(await api.POST("/v1/nodejs/execute", { body: { code: "globalThis.x = await Promise.resolve(42)", session_id: session } }));
  data(await api.POST("/v1/nodejs/execute", { body: { code: "console.log(x)", session_id: session } }));
  data(await api.GET("/v1/nodejs/sessions"));
  data(await api.GET("/v1/nodejs/sessions/{session_id}", { params: { path: { session_id: session } } }));
  data(await api.PATCH("/v1/nodejs/sessions/{session_id}", { params: { path: { session_id: session } }, body: {} }));
  await api.DELETE("/v1/nodejs/sessions/{session_id}", { params: { path: { session_id: session } } });
}

async function sandbox() {
  await api.GET("/v1/sandbox");
  data(await api.GET("/v1/sandbox/packages/python"));
  data(await api.GET("/v1/sandbox/packages/nodejs"));
  data(await api.POST("/v1/sandbox/hooks", { body: { name: "js", command: "true" } }));
  data(await api.GET("/v1/sandbox/hooks"));
  await api.DELETE("/v1/sandbox/hooks/{name}", { params: { path: { name: "js" } } });
  const begun = data(await api.POST("/v1/sandbox/observe/start", { body: { mode: "capture", interval_seconds: 0.5 } })).session_id;
  data(await api.GET("/v1/sandbox/observe/status"));
  data(await api.GET("/v1/sandbox/observe/live"));
  data(await api.POST("/v1/sandbox/observe/stop", { body: {} }));
  const report = data(await api.POST("/v1/sandbox/observe/export", { body: { session_id: begun } })).report_id;
  data(await api.GET("/v1/sandbox/observe/reports"));
  await api.GET("/v1/sandbox/observe/reports/{report_id}", { params: { path: { report_id: report } }, parseAs: "arrayBuffer" });
  await api.DELETE("/v1/sandbox/observe/reports/{report_id}", { params: { path: { report_id: report } } });
}

for (const area of [bash, shell, file, jupyter, code, nodejs, sandbox]) await area();
