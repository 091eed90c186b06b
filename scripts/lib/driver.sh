# shellcheck shell=bash
# The page driver (agent/driver) with its libraries, from the npm registry by the lock file. Sourced by scripts/run and scripts/test.

# page_driver FOLDER: leaves it there; seconds when it is there already. Fails, with a message, where npm or its registry cannot be had.
# Where this host's Node.js is older than 20 (Debian 12), the image's comes along.
page_driver() {
  local to=$1 part
  have npm || { say "    npm is not installed (scripts/setup --npm): no page driver"; return 1; }
  mkdir -p "$to"
  for part in "$ROOT"/agent/driver/*.js "$ROOT"/agent/driver/{package.json,page_driver}; do cp -u "$part" "$to/"; done
  if [ ! -x "$to/bin/node" ] && ! node_is_new; then rm -f "$to/node_modules/.of-lock"; fi
  if cmp -s "$ROOT/agent/driver/package-lock.json" "$to/node_modules/.of-lock"; then return 0; fi
  cp "$ROOT/agent/driver/package-lock.json" "$to/"
  (cd "$to" && step "install the page driver's libraries" npm ci --ignore-scripts --no-audit --no-fund) || return 1
  newer_node "$to/bin/node" || return 1
  cp "$to/package-lock.json" "$to/node_modules/.of-lock"
}

node_is_new() { have node && [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge 20 ]; }

# newer_node FILE: Node.js from the npm registry, by the image's lock file, unless this host's is new enough.
newer_node() {
  local to=$1 folder
  ! node_is_new || return 0
  folder=$(mktemp -d)
  cp "$ROOT"/image/node/package*.json "$folder/"
  (cd "$folder" && step "install Node.js for the page driver" npm ci --ignore-scripts --no-audit --no-fund) &&
    install -D -m 0755 "$folder"/node_modules/node-linux-*/bin/node "$to"
  local status=$?
  rm -rf "$folder"
  return $status
}
