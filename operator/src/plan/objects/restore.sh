# Every attempt begins with the same database, even if an earlier candidate changed it. It is a copy of a template,
# which this script makes right after the database was filled. Settings of the role survive the database, so this
# script resets them. Until then PGOPTIONS overrides them for these commands.
export PGCONNECT_TIMEOUT=5
server="${DATABASE_URL%/*}/postgres?sslmode=disable"
ask() {
  PGOPTIONS="-c search_path=pg_catalog -c default_transaction_read_only=off -c statement_timeout=0 -c lock_timeout=0 \
    -c idle_in_transaction_session_timeout=0" psql "$server" -X -qAt -v ON_ERROR_STOP=1 "$@"
}
# A node may learn a Service's address shortly after the pod behind it is ready.
end=$(($(date +%s) + 60))
until ask -c SELECT > /dev/null 2>&1 || [ "$(date +%s)" -ge "$end" ]; do
  sleep 1
done
found=$(ask -c "ALTER ROLE app RESET ALL" -c "SELECT datname FROM pg_database WHERE datname = 'app_seed'")
transactions=
if [ "$found" != app_seed ]; then
  # An interrupted seed may have left a part of the data.
  ask -c "DROP DATABASE IF EXISTS app WITH (FORCE)" -c "CREATE DATABASE app"
  fill
  ask -c "CREATE DATABASE app_seed TEMPLATE app"
else
  # A session reports its last transactions when it ends. The candidate's sessions have ended with its containers, or end here.
  for try in 1 2 3 4 5; do
    open=$(ask -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE datname = 'app' AND usename = current_user") || break
    [ "$open" != 0 ] || break
    sleep "0.$try"
  done
  transactions=$(ask -c "SELECT 'transactions:' || xact_commit + xact_rollback FROM pg_stat_database
    WHERE datname = 'app'") || transactions=
fi
ask -c "DROP DATABASE IF EXISTS app WITH (FORCE)" -c "CREATE DATABASE app TEMPLATE app_seed"
