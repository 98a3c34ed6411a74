# shellcheck shell=bash
# What the box needs from Debian, installed when it is missing.

LAB_PACKAGES=(buildah ca-certificates conntrack containerd containernetworking-plugins ethtool gcc
  iproute2 iptables libc6-dev mmdebstrap openssl procps runc socat util-linux)

packages_missing() {
  local package
  for package; do
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

install_packages() {
  apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# ensure_packages [PACKAGE...]: those named, or all that the box needs.
ensure_packages() {
  ((EUID == 0)) || die "the box needs root: it makes namespaces, mounts and cgroups" \
    "Run it as root, or use a cluster that you have; nothing of the box works without root."
  command -v dpkg-query >/dev/null || die "this is not Debian (no dpkg-query)" \
    "The box takes containerd, runc, CNI plugins, buildah and mmdebstrap from Debian 12 or later."
  (($#)) || set -- "${LAB_PACKAGES[@]}"
  local missing
  mapfile -t missing < <(packages_missing "$@")
  ((${#missing[@]})) || return 0
  say "missing Debian packages: ${missing[*]}"
  step "install Debian packages" install_packages "${missing[@]}" ||
    die "apt-get cannot install: ${missing[*]}" "Nothing of the box works without them."
}
