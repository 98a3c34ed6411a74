# Functions for the `run` scripts of the conformance suites, which source this file.
# shellcheck shell=bash

SERVERS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # the scripts that source this file use it
ROOT=$(cd "$SERVERS/../.." && pwd)

say() { printf '%s\n' "$*" >&2; }
die() {
  say "conformance: error: $*"
  exit 1
}

# install COMMAND PACKAGE: installs the Debian package that provides the missing command.
install() {
  say "installing $2"
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    die "$1 is missing: install it (Debian: apt-get install $2) and run this again"
  fi
  apt-get -qq update
  # Run level 1 prevents a package from starting its server.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$2" >/dev/null
}

# virtual_environment REQUIREMENTS...: sets VENV to an environment with these packages. Each combination is created
# once. pip runs once per file, because one file's hashes must not apply to another file's packages.
virtual_environment() {
  # Prefer Debian's Python, as in the image.
  local python=/usr/bin/python3 sum file
  [[ -x $python ]] || python=$(command -v python3) || die "python3 is missing"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "Python 3.11 or newer is needed"
  "$python" -c 'import ensurepip' 2>/dev/null || install 'python3 -m venv' python3-venv
  sum=$(cat "$@" <("$python" -VV) | sha256sum | cut -c 1-16)
  VENV=${XDG_CACHE_HOME:-$HOME/.cache}/frugality/conformance/$sum
  [[ ! -e $VENV/complete ]] || return 0
  say "creating the virtual environment $VENV"
  rm -rf "$VENV"
  "$python" -m venv "$VENV"
  for file; do
    "$VENV/bin/pip" install --quiet --require-hashes --only-binary :all: -r "$file"
  done
  touch "$VENV/complete"
}

postgres_bin() {
  local initdb
  initdb=$(command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1) || true
  [[ -n $initdb ]] && dirname "$(readlink -f "$initdb")"
}

# postgresql: installs PostgreSQL if it is missing, and exports what postgres.py needs.
postgresql() {
  POSTGRES_BIN=$(postgres_bin) || {
    install initdb postgresql
    POSTGRES_BIN=$(postgres_bin) || die "initdb is still missing"
  }
  command -v psql >/dev/null || install psql postgresql-client
  if [[ $(id -u) == 0 ]]; then
    POSTGRES_USER=postgres
    id postgres >/dev/null 2>&1 || POSTGRES_USER=nobody
    export POSTGRES_USER
  fi
  export POSTGRES_BIN SEED_SQL=$ROOT/operator/src/plan/objects/seed-contacts.sql
}

# contacts_rust: sets CONTACTS_RUST to a release build of this checkout, if it is not set.
contacts_rust() {
  [[ -z ${CONTACTS_RUST:-} ]] || return 0
  (cd "$ROOT" && cargo build --release --locked --package contacts-rust)
  CONTACTS_RUST=${CARGO_TARGET_DIR:-$ROOT/target}/release/contacts-rust
}

# temporary_folder: sets WORK to a new folder, which is removed when the script ends.
temporary_folder() {
  WORK=$(mktemp -d)
  trap finish EXIT
  trap 'exit 130' INT TERM
}

PYTEST=
# shellcheck disable=SC2317 # the trap calls it
finish() {
  [[ -z $PYTEST ]] || kill -TERM "$PYTEST" 2>/dev/null || true
  wait
  rm -rf "$WORK"
}

# tests FOLDER [PYTEST OPTIONS]: runs the tests in FOLDER and exits with their status.
tests() {
  local status=0
  cd "$1" || exit
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SERVERS/conformance_shared \
    "$VENV/bin/python" -m pytest -p no:cacheprovider --basetemp "$WORK/tests" "${@:2}" &
  PYTEST=$!
  wait "$PYTEST" || status=$?
  PYTEST=
  exit "$status"
}
