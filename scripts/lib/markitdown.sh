# shellcheck shell=bash
# markitdown, for /v1/util/convert_to_markdown without an image. Sourced by scripts/run and scripts/test.

# markitdown FOLDER: leaves it there, from the Python package index by the image's digests; at once when it is there already. Fails, with a
# message, where pip or the index cannot be had.
markitdown() {
  local to=$1
  if cmp -s "$ROOT/image/markitdown/requirements.txt" "$to/.requirements"; then return 0; fi
  /usr/bin/python3 -m pip --version >/dev/null 2>&1 || { say "    pip is not installed (scripts/setup --test): no markitdown"; return 1; }
  step "install markitdown" "$ROOT/image/markitdown/install" "$to"
}
