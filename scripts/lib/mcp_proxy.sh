# shellcheck shell=bash
# mcp-proxy, which scripts/bench mcp measures the hub beside, from the npm registry by its lock file. Sourced by scripts/bench.

# mcp_proxy FOLDER: leaves it there; at once when it is there already. Fails, with a message, where npm or its registry cannot be had.
mcp_proxy() {
  local to=$1
  have npm || { say "    npm is not installed (scripts/setup --npm): no mcp-proxy"; return 1; }
  mkdir -p "$to"
  if cmp -s "$ROOT/tests/bench/mcp_proxy/package-lock.json" "$to/node_modules/.of-lock"; then return 0; fi
  cp "$ROOT"/tests/bench/mcp_proxy/package*.json "$to/"
  (cd "$to" && step "install mcp-proxy" npm ci --ignore-scripts --no-audit --no-fund) || return 1
  cp "$to/package-lock.json" "$to/node_modules/.of-lock"
}
