# Runs PostgreSQL with the application's role and database. Any image with PostgreSQL's programs in its PATH will
# do: its own entry point is not used. Arguments go to the server, for example -c jit=off.
if [ ! -d "$PGDATA" ]; then
  # Under another name until it is whole, so that a start that was interrupted begins anew.
  new="$PGDATA.new"
  rm -rf "$new"
  initdb --pgdata="$new" --username=postgres --encoding=UTF8 --locale=C \
    --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
  pg_ctl start --pgdata="$new" --wait --options="-c listen_addresses= -c unix_socket_directories=$SOCKETS"
  psql -X -q -v ON_ERROR_STOP=1 --host="$SOCKETS" --username=postgres --dbname=postgres \
    -v role="$PGUSER" -v password="$PGPASSWORD" -v database="$PGDATABASE" <<'SQL'
-- It restores the database from a template before each attempt.
CREATE ROLE :"role" LOGIN CREATEDB PASSWORD :'password';
-- It may then start each trial with a CHECKPOINT.
GRANT pg_checkpoint TO :"role";
CREATE DATABASE :"database" OWNER :"role";
SQL
  pg_ctl stop --pgdata="$new" --wait --mode=fast
  mv "$new" "$PGDATA"
fi
# The last one of a setting counts: how the database is reached is nobody's to change.
exec postgres -D "$PGDATA" "$@" -c listen_addresses='*' -c port=5432 -c ssl=off \
  -c unix_socket_directories="$SOCKETS"
