-- For wrk: calls of the tool `greet`, each in the next one's session; counts answers that are not the tool's. Arguments: the sessions.
-- wrk runs this once itself, and once in each of its threads.
local sessions, threads, calls = {}, {}, 0
wrong = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  for position = 1, #arguments do
    sessions[position] = arguments[position]
  end
end

function request()
  calls = calls + 1
  wrk.headers["Mcp-Session-Id"] = sessions[calls % #sessions + 1]
  return wrk.format("POST", nil, nil, '{"jsonrpc":"2.0","id":' .. calls .. ',"method":"tools/call","params":{"name":"greet","arguments":{}}}')
end

function response(_, _, body)
  if not body:find('"greetings"', 1, true) then
    wrong = wrong + 1
  end
end

function done(summary)
  local others = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  for _, thread in ipairs(threads) do
    others = others + thread:get("wrong")
  end
  io.write(string.format("CALLS %d %d %d\n", summary.requests, summary.duration, others))
end
