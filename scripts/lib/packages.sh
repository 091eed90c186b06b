# shellcheck shell=bash
# Which Debian packages each part needs, and how they are installed. Sourced by scripts/setup and scripts/run.
# shellcheck disable=SC2034  # read by the scripts that source this file

SETS=(build test desktop run guest npm)

packages_for() {
  local release
  release=$(debian_version)
  case $release in
    12 | 13) ;;
    *) die "scripts/setup knows Debian 12 and 13 (found: $(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-unknown}"))" ;;
  esac
  case $1 in
    build)
      # gcc: the escape program is C; the rest is C++.
      echo ca-certificates git cmake ninja-build pkg-config gcc libc6-dev libssl-dev zlib1g-dev libzstd-dev nlohmann-json3-dev libtomlplusplus-dev \
        libseccomp-dev libcap-ng-dev libnl-3-dev libnl-route-3-dev libgtest-dev libgmock-dev | tr ' ' '\n'
      # caisson-display. Of libxcb only headers.
      echo libpng-dev libjpeg62-turbo-dev x11proto-dev libxcb1-dev libxcb-xtest0-dev libxcb-shm0-dev libxcb-randr0-dev \
        libxcb-xfixes0-dev libxcb-xkb-dev | tr ' ' '\n'
      # GCC 12 and 13 miscompile coroutines; Boost.Beast must be 1.81 or newer.
      if [ "$release" = 12 ]; then printf '%s\n' clang-19 libclang-rt-19-dev libstdc++-12-dev libboost1.81-dev
      else printf '%s\n' g++-14 libboost-dev; fi ;;
    test)
      echo python3 python3-venv python3-pip python3-chardet python3-openpyxl python3-pypdf python3-pytest python3-httpx python3-websockets \
        python3-jsonschema python3-requests python3-aiohttp python3-yaml libimage-exiftool-perl wget musl-tools ripgrep nodejs g++ esbuild lua5.4 php-cli ruby python3-ipykernel python3-jupyter-client python3-matplotlib python3-flask \
        chromium chromium-driver python3-selenium curl procps iproute2 apparmor bubblewrap \
        shellcheck clang-format-19 pyflakes3 binutils libdevmapper1.02.1 | tr ' ' '\n'
      # Clients of the egress tests, and the proxy that they compare the door with. Not tinyproxy: that package starts a service.
      echo golang-go default-jdk-headless tinyproxy-bin | tr ' ' '\n' ;;
    desktop)
      # What the sessions `desktop` and `browser` run, for scripts/run --native; the image has the same.
      echo tigervnc-standalone-server openbox chromium ffmpeg fonts-liberation fonts-noto-cjk fonts-noto-color-emoji | tr ' ' '\n' ;;
    guest)
      echo qemu-system-x86 mmdebstrap debian-archive-keyring e2fsprogs busybox-static cpio xz-utils | tr ' ' '\n' ;;
    bench)
      # Of scripts/bench front, egress, browser and mcp alone; no test needs them.
      echo nginx libnginx-mod-stream tinyproxy-bin wrk slowhttptest openssl xdotool | tr ' ' '\n' ;;
    npm)
      # Debian's does not go with a Node.js from elsewhere, which has its own.
      have npm || echo npm ;;
    run)
      # iptables: netavark's port publishing; mmdebstrap: the base image where none can be pulled.
      echo ca-certificates curl podman runc iptables netavark aardvark-dns uidmap fuse-overlayfs slirp4netns \
        mmdebstrap debian-archive-keyring | tr ' ' '\n' ;;
  esac
}

# Prints those of the given packages that are not installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | awk '$2 == "installed" {print $1}') || true
  printf '%s\n' "$@" | sort -u | grep -vxF -f <(printf '%s\n' "$installed") || true
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} = 0 ]; then say "all packages are installed"; return 0; fi
  if ! is_root; then
    say "These packages are missing. Install them with:"
    printf 'sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}"
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  step "apt-get update" apt-get update -q
  step "install ${#missing[@]} packages" apt-get install -yq --no-install-recommends "${missing[@]}"
}
