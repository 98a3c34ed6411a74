"""The pool of PostgreSQL connections and the statements sent through it."""

import asyncio
import logging
import sys
from typing import NamedTuple

import asyncpg

from .settings import Settings

# The one statement of a request for a contact.
CONTACT_SQL = "SELECT etag, vcard FROM contacts WHERE id = $1"
# Read once at start-up: the keys are spread over this many rows.
ROWS_SQL = "SELECT count(*) FROM contacts"
# What the readiness path runs.
HEALTH_SQL = "SELECT 1"

# How long the database may take to become usable at start-up.
START_UP_SECONDS = 60
# Time between two tries at start-up.
PAUSE_SECONDS = 1
# How long one connect, or one statement, may take.
TIMEOUT_SECONDS = 5

LARGEST_INTEGER = 2**31 - 1

log = logging.getLogger(__name__)


class DatabaseError(Exception):
    """The database gave no answer."""


class Contact(NamedTuple):
    """A contact as it is sent: the body and its entity tag."""

    etag: str
    """md5 of the vCard, without quotes."""
    vcard: str
    """The vCard itself."""


class Database:
    """The pool, open and warm, and what was learnt about the table."""

    def __init__(self, pool: asyncpg.Pool, rows: int) -> None:
        self._pool = pool
        self.rows = rows
        """Number of contacts, at least 1, as counted at start-up."""

    @classmethod
    async def connect(cls, settings: Settings) -> "Database":
        """Open every connection of the pool, prepare the statement on each and count the rows.

        Tries again for a minute, because a server may start before its database.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + START_UP_SECONDS
        while True:
            try:
                return await cls._connect_once(settings)
            except DatabaseError as error:
                left = deadline - clock()
                if left <= PAUSE_SECONDS:
                    raise DatabaseError(
                        f"the database is not usable after {START_UP_SECONDS} s: {error}"
                    ) from error
                log.warning("waiting for the database, %d s left: %s", left, error)
                await asyncio.sleep(PAUSE_SECONDS)

    @classmethod
    async def _connect_once(cls, settings: Settings) -> "Database":
        try:
            pool = await asyncpg.create_pool(
                settings.database_url,
                min_size=settings.pool_size,
                max_size=settings.pool_size,
                init=_prepare,
                reset=_keep,
                timeout=TIMEOUT_SECONDS,
                command_timeout=TIMEOUT_SECONDS,
                # By default a connection is closed after 50,000 statements or five idle minutes, and
                # a statement prepared anew after five minutes: each would fall into a measurement.
                max_queries=sys.maxsize,
                max_inactive_connection_lifetime=0,
                max_cached_statement_lifetime=0,
                server_settings={"application_name": "contacts-python"},
            )
        except FAILURES as error:
            raise _failure("no connection", error) from error
        try:
            rows = await pool.fetchval(ROWS_SQL)
        except FAILURES as error:
            pool.terminate()
            raise _failure("the statement failed", error) from error
        if not 1 <= rows <= LARGEST_INTEGER:
            pool.terminate()
            raise DatabaseError(f"the table contacts has {rows} rows")
        return cls(pool, rows)

    async def contact(self, row: int) -> Contact | None:
        """Return the contact with this primary key."""
        try:
            record = await self._pool.fetchrow(CONTACT_SQL, row)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error
        return None if record is None else Contact(record["etag"], record["vcard"])

    async def check(self) -> None:
        """Show that the pool can run a statement."""
        try:
            await self._pool.fetchval(HEALTH_SQL)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error

    def terminate(self) -> None:
        """Close every connection without waiting for it."""
        self._pool.terminate()


# What asyncpg raises where the database, or the way to it, fails.
FAILURES = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def _failure(what: str, error: BaseException) -> DatabaseError:
    if isinstance(error, TimeoutError):
        return DatabaseError(f"no answer within {TIMEOUT_SECONDS} s")
    return DatabaseError(f"{what}: {error or type(error).__name__}")


async def _prepare(connection: asyncpg.Connection) -> None:
    await connection.fetchrow(CONTACT_SQL, 1)


async def _keep(_connection: asyncpg.Connection) -> None:
    """Replace asyncpg's own clean-up, a second statement after each request.

    Nothing here changes a connection's state, and the Rust server's pool does no clean-up either.
    """
