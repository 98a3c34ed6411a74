# Runs PostgreSQL with the application's role and database. Any image with PostgreSQL's programs in its PATH works,
# because this script replaces the image's entry point. Arguments go to the server, for example -c jit=off.
if [ ! -d "$PGDATA" ]; then
  # The folder gets its final name when it is complete. An interrupted start therefore begins again from the start.
  new="$PGDATA.new"
  rm -rf "$new"
  initdb --pgdata="$new" --username=postgres --encoding=UTF8 --locale=C \
    --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
  pg_ctl start --pgdata="$new" --wait --options="-c listen_addresses= -c unix_socket_directories=$SOCKETS"
  psql -X -q -v ON_ERROR_STOP=1 --host="$SOCKETS" --username=postgres --dbname=postgres \
    -v role="$PGUSER" -v password="$PGPASSWORD" -v database="$PGDATABASE" <<'SQL'
-- The role restores the database from a template before each attempt.
CREATE ROLE :"role" LOGIN CREATEDB PASSWORD :'password';
-- The role starts each trial with a CHECKPOINT.
GRANT pg_checkpoint TO :"role";
CREATE DATABASE :"database" OWNER :"role";
SQL
  pg_ctl stop --pgdata="$new" --wait --mode=fast
  mv "$new" "$PGDATA"
fi
# PostgreSQL uses the last value of a setting: the spec's parameters can't change the address.
exec postgres -D "$PGDATA" "$@" -c listen_addresses='*' -c port=5432 -c ssl=off \
  -c unix_socket_directories="$SOCKETS"
