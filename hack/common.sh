# shellcheck shell=bash
# What the scripts of this folder share. To be sourced.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

LAB=hack/lab/lab
# shellcheck disable=SC2034 # read by the scripts that source this one
VERSION=$(awk -F'"' '/^\[workspace.package\]/{on=1} on && /^version/{print $2; exit}' Cargo.toml)

# say TEXT: a line about progress, with the seconds since the script began.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }

# die TEXT [REMEDY]...: ends the script.
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '       %s\n' "$@" >&2
  exit 1
}

kubectl() { "$LAB" kubectl "$@"; }

# need_toolchains: Rust and Go are assumed, and nothing else.
need_toolchains() {
  local go
  # The newest that a part of the cluster in a box asks for.
  go=$(sed -n 's/^go //p' hack/lab/parts/*/go.mod | sort --version-sort | tail -n 1)
  command -v cargo >/dev/null || die "cargo is not in PATH: install Rust 1.89 or newer (https://rustup.rs)"
  command -v go >/dev/null || die "go is not in PATH: install Go $go or newer (https://go.dev/dl)"
}

# architecture_of MACHINE: what images call it; MACHINE as `uname -m` prints it.
architecture_of() {
  case $1 in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) die "there are no images for $1: only for x86_64 and aarch64 (a Raspberry Pi needs a 64-bit system)" ;;
  esac
}

# need_rust_for ARCHITECTURE: what compiles Rust for another architecture than this machine's. Sets
# RUST_TARGET to rustc's name of it. Linked with Debian's cross compiler, so that the C library is
# the one of the images, as on the architecture itself.
need_rust_for() {
  local gnu linker
  case $1 in
    amd64) gnu=x86_64-linux-gnu ;;
    arm64) gnu=aarch64-linux-gnu ;;
  esac
  RUST_TARGET=${gnu/-linux/-unknown-linux}
  need_packages "gcc-${gnu/_/-}" "libc6-dev-$1-cross"
  linker=CARGO_TARGET_${RUST_TARGET//-/_}_LINKER
  export "${linker^^}=$gnu-gcc"
  [[ ! -d $(rustc --print target-libdir --target "$RUST_TARGET") ]] || return 0
  command -v rustup >/dev/null || die "this Rust has no standard library for $RUST_TARGET, and there is no rustup to add it"
  say "rustup target add $RUST_TARGET"
  rustup --quiet target add "$RUST_TARGET" || die "rustup cannot fetch the standard library for $RUST_TARGET"
}

# What the images hold.
BINARIES=(frugality-operator frugality-meter frugality-injector contacts-rust streamdata-rust)
# The programs in Go that the images hold: name, module.
declare -A GO_PROGRAMS=([k6]=injector/k6 [streamdata-go]=examples/servers/streamdata-go)

# The tests that are written in Go and belong to none of them: modules.
# shellcheck disable=SC2034 # read by hack/test
GO_TESTS=(tests/kstatus)

# Tests that need programs of the cluster in a box. All builds with tests have them, or the operator would be
# compiled twice.
TEST_FEATURES=(--features frugality-operator/api-server-tests)

# cargo_binaries [OPTION]...: builds all of them, and always together: fewer would have other features of
# what they share, which is then compiled twice. So would tests: with FRUGALITY_WITH_TESTS=1, where these are
# wanted as well, all of it is built in one.
cargo_binaries() {
  local scope=("${BINARIES[@]/#/--package=}")
  [[ ${FRUGALITY_WITH_TESTS:-} != 1 || " $*" == *" --target"* ]] || scope=(--workspace --all-targets "${TEST_FEATURES[@]}")
  cargo build --release --locked "$@" "${scope[@]}"
}

# runner_program ARCHITECTURE FILE: builds the runner, which is executed in images of any kind and so linked
# statically; in a folder of its own, for all that it is made of is compiled otherwise.
runner_program() {
  local target
  target=$(rustc -vV | sed -n 's/^host: //p')
  if [[ $1 != "$(architecture_of "$(uname -m)")" ]]; then
    need_rust_for "$1"
    target=$RUST_TARGET
  fi
  RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --package frugality-runner \
    --target "$target" --target-dir target/static
  cp -u "target/static/$target/release/frugality-runner" "$2"
}

# go_in FOLDER ARGUMENTS...: go there. Without cgo, so that a program needs nothing of an image; and always
# with the same flags, for with others all that it is made of is compiled again.
go_in() {
  local folder=$1
  shift
  (cd "$folder" && GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath go "$@")
}

# go_program NAME FILE: builds one of GO_PROGRAMS; for another architecture by GOARCH.
go_program() {
  local file
  file=$(realpath --canonicalize-missing "$2")
  go_in "${GO_PROGRAMS[$1]}" build -buildvcs=false -ldflags '-s -w' -o "$file" .
}

# need_packages PACKAGE...: Debian packages, installed if missing.
need_packages() {
  local missing=() package
  for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || die "these Debian packages are missing, and only root can install them: ${missing[*]}"
  say "installing ${missing[*]}"
  apt-get update -qq
  # Run level 1 keeps a package from starting a server of its own.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# python_tools: those of the tests, in a folder of this checkout.
python_tools() {
  need_packages python3-venv
  local venv=build/venv stamp=build/venv/.requirements
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  cmp -s tests/requirements.txt "$stamp" || {
    say "installing the tests' Python packages"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt "$stamp"
  }
  export PATH=$ROOT/$venv/bin:$PATH
}
