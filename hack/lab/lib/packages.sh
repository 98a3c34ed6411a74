# shellcheck shell=bash
# Installs missing Debian packages that the box needs.

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

# ensure_packages [PACKAGE...]: installs the named packages, or all that the box needs, if they are missing.
ensure_packages() {
  ((EUID == 0)) || die "the box needs root: it makes namespaces, mounts and cgroups" \
    "Run the command as root, or use your own cluster. The box does not work without root."
  command -v dpkg-query >/dev/null || die "this is not Debian (no dpkg-query)" \
    "The box takes containerd, runc, CNI plugins, buildah and mmdebstrap from Debian 12 or later."
  (($#)) || set -- "${LAB_PACKAGES[@]}"
  local missing
  mapfile -t missing < <(packages_missing "$@")
  ((${#missing[@]})) || return 0
  say "missing Debian packages: ${missing[*]}"
  step "install Debian packages" install_packages "${missing[@]}" ||
    die "apt-get cannot install: ${missing[*]}" "The box does not work without them."
}
