# shellcheck shell=bash
# Docker for tests that start a daemon of their own: Debian's packages, unpacked below build/, not installed. Nothing of them runs
# but what a test starts, and the machine's own containers stay podman's. Sourced by scripts/test.

DOCKER_PACKAGES=(docker.io containerd runc)

# A PATH with dockerd, docker, containerd and runc; empty where they can be found already, or cannot be had.
docker_programs() {
  local folder=$ROOT/build/docker package
  ! have dockerd || return 0
  if [ ! -e "$folder/done" ]; then
    rm -rf "$folder"
    mkdir -p "$folder/debs"
    # docker-cli: a package of its own from Debian 13 on.
    for package in "${DOCKER_PACKAGES[@]}" docker-cli; do
      (cd "$folder/debs" && apt-get download -q "$package") >&2 || [ "$package" = docker-cli ] || return 0
    done
    for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder" || return 0; done
    rm -r "$folder/debs"
    touch "$folder/done"
  fi
  echo "$folder/usr/sbin:$folder/usr/bin"
}
