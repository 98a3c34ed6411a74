# shellcheck shell=bash
# Keeps the box's programs running.

# supervise NAME COMMAND...: runs the command in the background with its own log, and starts it again one second
# after it ends.
supervise() {
  local name=$1
  shift
  (
    while :; do
      "$@" || true
      printf '%s lab: %s ended; starting it again\n' "$(date +%FT%T)" "$name"
      sleep 1
    done >>"$LAB_LOG_DIR/$name.log" 2>&1 </dev/null
  ) &
}
