# shellcheck shell=bash
# Builds the image, or does nothing when the one that is here was built from the same files. Sourced by scripts/run.

# One hash over everything that the build reads (.dockerignore names the same files).
tree_hash() {
  (cd "$ROOT" && { find CMakeLists.txt CMakePresets.json LICENSE launcher agent policies image/Dockerfile image/NOTICE image/markitdown image/node \
    image/ping image/python image/sitecustomize.py image/sudo -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    printf '%s' "${PYTHON_VERSIONS-}${BROWSER:+ $BROWSER}${MARKITDOWN:+ markitdown=$MARKITDOWN}${CODEX:+ codex=$CODEX}${OPENCODE:+ opencode=$OPENCODE}"; } | sha256sum | cut -c1-24)
}

image_label() { "${ENGINE[@]}" image inspect -f '{{index .Config.Labels "caisson.tree"}}' "$IMAGE" 2>/dev/null || true; }

# build_image [CA_BUNDLE]: leaves $IMAGE up to date.
build_image() {
  local bundle=${1:-} hash flags=()
  hash=$(tree_hash)
  if [ "$(image_label)" = "$hash" ]; then
    say "==> image $IMAGE is up to date ($hash)"
    return 0
  fi
  base_image
  flags=(-f image/Dockerfile -t "$IMAGE" --build-arg "BASE=$BASE" --build-arg "PYTHON_VERSIONS=${PYTHON_VERSIONS-}" --build-arg "BROWSER=${BROWSER:-1}" \
         --build-arg "MARKITDOWN=${MARKITDOWN:-1}" --build-arg "CODEX=${CODEX-}" --build-arg "OPENCODE=${OPENCODE-}" \
         --label "caisson.tree=$hash")
  if [ "$ENGINE_KIND" = podman ]; then
    # Stages side by side, as docker's builder has them anyway: packages come in while the programs are compiled.
    flags+=(--format docker --layers --pull=never --jobs 3)
    # The builder's roots of trust, for mirrors that are reached by https behind an inspecting network. Mounted for the
    # build's commands only, on a directory that Debian has anyway: no layer of the image holds them or their place.
    if [ -n "$bundle" ]; then
      local mount
      mount=$STATE/build-ca
      mkdir -p "$mount"
      cp -L "$bundle" "$mount/ca.crt"
      printf 'Acquire::https::CaInfo "/mnt/ca.crt";\n' >"$mount/apt.conf"
      flags+=(-v "$mount:/mnt:ro" --build-arg APT_CONFIG=/mnt/apt.conf --build-arg NPM_CONFIG_CAFILE=/mnt/ca.crt
        --build-arg PIP_CERT=/mnt/ca.crt)
    fi
  fi
  (cd "$ROOT" && step "build image $IMAGE (minutes the first time)" "${ENGINE[@]}" build "${flags[@]}" .) ||
    die "the image could not be built"
}
