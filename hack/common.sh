# shellcheck shell=bash
# Functions that the scripts in this folder share. They source this file.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

LAB=hack/lab/lab
# shellcheck disable=SC2034 # read by the scripts that source this one
VERSION=$(awk -F'"' '/^\[workspace.package\]/{on=1} on && /^version/{print $2; exit}' Cargo.toml)

# The command that the user runs begins the list of steps and their durations. The scripts that it runs find the file in
# the variable, and append to it.
TIMINGS_ARE_OURS=0
if [[ -z ${FRUGALITY_TIMINGS:-} ]]; then
  export FRUGALITY_TIMINGS=$ROOT/build/timings.tsv
  TIMINGS_ARE_OURS=1
  mkdir -p build
  : >"$FRUGALITY_TIMINGS"
fi
STEP=""
STEP_BEGAN=0
# A script that sets another trap calls end_step in it.
trap end_step EXIT

# say TEXT: prints a progress line with the seconds since the script began. A step with this name begins.
say() {
  end_step
  STEP=$*
  STEP_BEGAN=$SECONDS
  printf '[%4ds] %s\n' "$SECONDS" "$STEP" >&2
}

# end_step: writes the duration of the step that the last progress line began.
end_step() {
  [[ -z $STEP ]] || printf '%d\thack/%s\t%s\n' "$((SECONDS - STEP_BEGAN))" "${0##*/}" "$STEP" >>"$FRUGALITY_TIMINGS"
  STEP=""
}

# longest_steps: prints the longest steps, if this script is the command that the user runs.
longest_steps() {
  end_step
  ((TIMINGS_ARE_OURS)) || return 0
  echo "The longest steps. A step includes the steps of the scripts that it runs. build/timings.tsv has all steps:" >&2
  sort --numeric-sort --reverse "$FRUGALITY_TIMINGS" |
    awk -F '\t' 'NR <= 12 && $1 > 0 { printf "%6d s  %-13s %s\n", $1, $2, $3 }' >&2
}

# die TEXT [REMEDY]...: prints an error and its remedies, and ends the script.
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '       %s\n' "$@" >&2
  exit 1
}

# header_help "$@": if the first argument is --help, prints the comment at the top of the script, and exits.
header_help() {
  [[ ${1:-} == --help || ${1:-} == -h ]] || return 0
  sed -n '2,/^[^#]/{ /^# shellcheck/d; s/^# \{0,1\}//p }' "$ROOT/hack/$(basename "$0")"
  exit
}

kubectl() { "$LAB" kubectl "$@"; }

# need_toolchains: Rust and Go must be installed before. The scripts install everything else.
need_toolchains() {
  local go
  use_stable_if_pinned
  # The newest version that a part of the cluster in a box requires.
  go=$(sed -n 's/^go //p' hack/lab/parts/*/go.mod | sort --version-sort | tail -n 1)
  command -v cargo >/dev/null || die "cargo is not in PATH: install Rust 1.89 or newer (https://rustup.rs)"
  command -v go >/dev/null || die "go is not in PATH: install Go $go or newer (https://go.dev/dl)"
}

# use_stable_if_pinned: rustup finds a toolchain by its name, and downloads the one that rust-toolchain.toml names if
# there is none of that name. This avoids the download if the same version is installed as stable.
use_stable_if_pinned() {
  local pinned
  pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
  [[ -n ${RUSTUP_TOOLCHAIN:-} || $(rustc +stable --version 2>/dev/null) != "rustc $pinned "* ]] || export RUSTUP_TOOLCHAIN=stable
}

# need_cargo_tool NAME VERSION: installs a cargo subcommand for this checkout, and puts it into PATH.
need_cargo_tool() {
  local folder=$ROOT/build/tools/$1-$2
  [[ -x $folder/bin/$1 ]] || {
    say "building $1 $2"
    CARGO_TARGET_DIR=$ROOT/build/tools/target cargo install --quiet --locked --root "$folder" "$1@$2"
  }
  PATH=$folder/bin:$PATH
}

# need_go_tool PACKAGE VERSION: installs a Go program for this checkout, and puts it into PATH. The linker sets the
# version, because syft writes its version into each SBOM.
need_go_tool() {
  local folder=$ROOT/build/tools/${1##*/}-$2
  [[ -x $folder/${1##*/} ]] || {
    say "building ${1##*/} $2"
    GOBIN=$folder GOWORK=off GOFLAGS=-mod=readonly go install -ldflags "-s -w -X main.version=$2" "$1@v$2"
  }
  PATH=$folder:$PATH
}

# architecture_of MACHINE: prints the images' name of an architecture. MACHINE is in the form of `uname -m`.
architecture_of() {
  case $1 in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) die "no images for the architecture $1: only for x86_64 and aarch64 (a Raspberry Pi needs a 64-bit system)" ;;
  esac
}

# gnu_of ARCHITECTURE: prints Debian's name of its compiler and tools.
gnu_of() {
  case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
  esac
}

# need_rust_for ARCHITECTURE: installs the tools that compile Rust for another architecture than this machine's.
# Sets RUST_TARGET to rustc's name of that architecture. Debian's cross compiler links the programs, so they use
# the same C library as the images.
need_rust_for() {
  local gnu
  gnu=$(gnu_of "$1")
  RUST_TARGET=${gnu/-linux/-unknown-linux}
  need_packages "gcc-${gnu/_/-}" "libc6-dev-$1-cross"
  use_linker "$RUST_TARGET" "$gnu-gcc"
  [[ ! -d $(rustc --print target-libdir --target "$RUST_TARGET") ]] || return 0
  command -v rustup >/dev/null || die "this Rust has no standard library for $RUST_TARGET, and there is no rustup to add it"
  say "rustup target add $RUST_TARGET"
  rustup --quiet target add "$RUST_TARGET" || die "rustup cannot fetch the standard library for $RUST_TARGET"
}

# use_linker TARGET COMPILER: links programs for rustc's TARGET with this C compiler.
use_linker() {
  local linker
  linker=CARGO_TARGET_${1//-/_}_LINKER
  export "${linker^^}=$2"
}

# A release pushes the images under this prefix. Chart and examples name them there, so local builds have these names too.
# shellcheck disable=SC2034 # read by the scripts that source this one
PUBLISHED=ghcr.io/frugality-dev
# shellcheck disable=SC2034 # read by the scripts that source this one
IMAGES=(operator meter injector injector-k6 contacts-rust contacts-python radicale streamdata-rust streamdata-go mnesia-erlang programs)

# revision: prints the commit of this checkout, with "-dirty" if a tracked file differs from it.
revision() { git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null || echo unknown; }

# The Rust programs in the images, without the node meter and the runner, which are built with other flags.
BINARIES=(frugality-operator kubectl-frugality frugality-injector contacts-rust streamdata-rust)
# The Go programs in the images: name, module.
declare -A GO_PROGRAMS=([fortio]=injector/fortio [k6]=injector/k6 [streamdata-go]=examples/servers/streamdata-go)

# The modules of Go tests that belong to none of these programs.
# shellcheck disable=SC2034 # read by hack/test
GO_TESTS=(tests/argo-cd tests/kstatus)

# Tests that need programs of the cluster in a box. All builds with tests have them, or the operator would be
# compiled twice.
TEST_FEATURES=(--features frugality-operator/api-server-tests)

# cargo_binaries [OPTION]...: builds all BINARIES in one command. A build of fewer packages would enable other
# features of shared crates and compile them a second time. The same holds for tests, so FRUGALITY_WITH_TESTS=1
# builds the whole workspace and its tests in one command.
cargo_binaries() {
  local scope=("${BINARIES[@]/#/--package=}")
  [[ ${FRUGALITY_WITH_TESTS:-} != 1 || " $*" == *" --target"* ]] || scope=(--workspace --all-targets "${TEST_FEATURES[@]}")
  cargo build --release --locked "$@" "${scope[@]}"
}

# static_programs ARCHITECTURE: builds the node meter and the runner of batches, and sets STATIC to their folder. The runner
# is linked statically, because it must run in any image. Most of the meter's memory is code, so it is linked with the small
# C library musl, which is part of Rust's standard library for this target. One command builds both, and
# compiles their shared crates once. The C code of the crate ring needs only headers and compiler. The tables for unwinding are left
# out, because a panic ends the program. Without rustup or its server, glibc is linked, and the meter takes more memory.
static_programs() {
  local gnu target compiler=cc flags='-C force-unwind-tables=no -C link-arg=-Wl,-z,pack-relative-relocs'
  gnu=$(gnu_of "$1")
  target=${gnu/-linux-gnu/-unknown-linux-musl}
  if [[ $1 != "$(architecture_of "$(uname -m)")" ]]; then
    need_rust_for "$1"
    compiler=$gnu-gcc
  fi
  if [[ ! -d $(rustc --print target-libdir --target "$target") ]] && ! rustup --quiet target add "$target"; then
    say "rustup cannot add $target: the node meter is linked with glibc, and takes 1 MiB more"
    target=${gnu/-linux/-unknown-linux}
    flags+=' -C target-feature=+crt-static'
  fi
  use_linker "$target" "$compiler"
  # Some compilers replace functions by checked ones that only glibc has.
  export "CC_${target//-/_}=$compiler" "CFLAGS_${target//-/_}=-U_FORTIFY_SOURCE"
  RUSTFLAGS=$flags cargo build --profile small --locked --package frugality-meter --package frugality-runner \
    --target "$target" --target-dir target/static
  # shellcheck disable=SC2034 # read by the scripts that source this one
  STATIC=target/static/$target/small
}

# with_crates ARCHITECTURE FOLDER PROGRAM...: copies Rust programs to build/ARCHITECTURE, with the list of their crates.
with_crates() {
  local gnu
  gnu=$(gnu_of "$1")
  need_packages "binutils-${gnu/_/-}" python3
  hack/add-crates --target "${gnu/-linux/-unknown-linux}" --objcopy "$gnu-objcopy" --to "build/$1" "${@:2}"
}

# go_in FOLDER ARGUMENTS...: runs go in FOLDER. Without cgo, a program needs no library of an image. The flags
# are always the same, because go compiles all packages again if a flag changes. Two settings save a quarter of the CPU time: less
# garbage collection in the compiler, and no debugging information. The linker would strip it anyway.
go_in() {
  local folder=$1
  shift
  (cd "$folder" && GOWORK=off GOGC=400 CGO_ENABLED=0 GOFLAGS='-trimpath -gcflags=all=-dwarf=false' go "$@")
}

# go_program NAME FILE: builds one of GO_PROGRAMS. GOARCH selects another architecture.
go_program() {
  local file
  file=$(realpath --canonicalize-missing "$2")
  go_in "${GO_PROGRAMS[$1]}" build -buildvcs=false -ldflags '-s -w' -o "$file" .
}

# k6_documents FOLDER: writes what the AGPL-3.0 asks for next to the program k6: the licence, and the complete source
# with all modules. Equal sources give equal files, so the image's layers stay the same.
k6_documents() {
  local source=build/k6-source stamp=build/k6-source.sum sum
  sum=$(cat injector/k6/* | sha256sum)
  [[ ! -e $1/k6-source.tar.xz || $(cat "$stamp" 2>/dev/null) != "$sum" ]] || return 0
  need_packages xz-utils
  say "collecting the source of k6"
  rm -rf "$source" "$1"
  mkdir -p "$source" "$1"
  cp injector/k6/* "$source"
  go_in injector/k6 mod vendor -o "$ROOT/$source/vendor"
  cp "$source/vendor/go.k6.io/k6/LICENSE.md" injector/k6/README.md "$1"
  tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --directory build k6-source | xz >"$1/k6-source.tar.xz"
  chmod 644 "$1"/*
  touch --date=@0 "$1"/*
  rm -rf "$source"
  printf '%s\n' "$sum" >"$stamp"
}

# need_packages PACKAGE...: installs the Debian packages that are missing.
need_packages() {
  local missing=() package
  for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || die "these Debian packages are missing, and only root can install them: ${missing[*]}"
  say "installing ${missing[*]}"
  apt-get update -qq
  # At run level 1 a package does not start its server.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# python_tools [REQUIREMENTS]: installs the tests' Python packages into a folder of this checkout.
python_tools() {
  need_packages python3-venv
  local requirements=${1:-tests/requirements.txt} venv=build/venv
  local stamp=$venv/.${requirements//\//-}
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  cmp -s "$requirements" "$stamp" || {
    say "installing the packages of $requirements"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$requirements"
    cp "$requirements" "$stamp"
  }
  export PATH=$ROOT/$venv/bin:$PATH
}
