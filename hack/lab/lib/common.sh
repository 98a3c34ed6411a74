# shellcheck shell=bash
# Prints progress, errors and durations.

# Prints a progress line to standard error, because a pipe may use the command's standard output.
say() { printf '%s\n' "$*" >&2; }

# die TEXT [REMEDY]...: prints an error and ends the command. The remedies name what is missing and what works
# without it.
die() {
  printf 'lab: error: %s\n' "$1" >&2
  shift
  local line
  for line in "$@"; do printf '            %s\n' "$line" >&2; done
  exit 1
}

# kill_tree PID: kills a process and all its descendants.
kill_tree() {
  local child
  for child in $(pgrep --parent "$1"); do kill_tree "$child"; done
  kill "$1" 2>/dev/null || true
}

# step TEXT COMMAND...: runs the command with its output in $LAB_LOG_DIR/<step>.log, and prints a line every
# ten seconds while the command runs. If the command fails, it prints the end of the log and returns the status. If one
# of the scripts in hack/ runs this one, its list of steps gets the duration.
step() {
  local text=$1 log status started elapsed next=10 pid
  shift
  mkdir -p "$LAB_LOG_DIR"
  log="$LAB_LOG_DIR/$(printf '%s' "$text" | tr -c '[:alnum:].-' '-').log"
  started=$SECONDS
  "$@" >"$log" 2>&1 &
  pid=$!
  # Commands in the background do not receive the terminal's interrupt.
  trap 'kill_tree "$pid"; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    elapsed=$((SECONDS - started))
    if ((elapsed >= next)); then
      say "  $text … ${elapsed}s"
      next=$((elapsed + 10))
    fi
    sleep 0.2
  done
  status=0
  wait "$pid" || status=$?
  trap - INT TERM
  elapsed=$((SECONDS - started))
  [[ -z ${FRUGALITY_TIMINGS:-} ]] || printf '%d\thack/lab\t%s\n' "$elapsed" "$text" >>"$FRUGALITY_TIMINGS"
  if ((status == 0)); then
    say "  $text: done in ${elapsed}s"
  else
    say "  $text: failed after ${elapsed}s; the end of $log:"
    tail -n 20 "$log" | sed 's/^/    | /' >&2
  fi
  return "$status"
}

# wait_for SECONDS TEXT COMMAND...: tries the command until it succeeds.
wait_for() {
  local limit=$1 text=$2 started=$SECONDS next=10 elapsed
  shift 2
  until ("$@") >/dev/null 2>&1; do
    elapsed=$((SECONDS - started))
    ((elapsed < limit)) || return 1
    if ((elapsed >= next)); then
      say "  $text … ${elapsed}s"
      next=$((elapsed + 10))
    fi
    sleep 0.3
  done
}
