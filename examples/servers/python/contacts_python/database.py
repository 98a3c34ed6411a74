"""The pool of PostgreSQL connections and the statements sent through it."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto
from typing import NamedTuple

import asyncpg

from .settings import Settings

# The only statement of a request for a contact.
CONTACT_SQL = "SELECT etag, vcard FROM contacts WHERE id = $1"
# The same, by the contact's name in the address book.
NAMED_SQL = "SELECT etag, vcard FROM contacts WHERE name = $1"
# A page of the address book. Each page is a separate statement, so no transaction waits for a slow client.
# A contact that exists during the whole request is read exactly once.
PAGE_SQL = (
    "SELECT id, name, etag, octet_length(vcard), CASE WHEN $2 THEN vcard ELSE '' END "
    "FROM contacts WHERE id > $1 ORDER BY id LIMIT 250"
)
# Rows of a full page: the limit in PAGE_SQL.
PAGE_ROWS = 250
# Contacts by their names.
NAMES_SQL = (
    "SELECT id, name, etag, octet_length(vcard), CASE WHEN $2 THEN vcard ELSE '' END "
    "FROM contacts WHERE name = ANY($1)"
)
# Changes with every change of the address book.
COLLECTION_TAG_SQL = (
    "SELECT coalesce(md5(string_agg(name || ' ' || etag, ',' ORDER BY id)), '') FROM contacts"
)
# Writers wait for each other, readers do not wait. The next statement's result stays true until commit.
LOCK_SQL = "LOCK TABLE contacts IN SHARE ROW EXCLUSIVE MODE"
# The contacts that a new contact may conflict with. The contact with the same UID comes first.
SAME_SQL = "SELECT name, uid, etag FROM contacts WHERE name = $1 OR uid = $2 ORDER BY uid = $2 DESC"
INSERT_SQL = (
    "INSERT INTO contacts (id, uid, vcard, etag, name) "
    "SELECT coalesce(max(id), 0) + 1, $2::text, $3::text, md5($3::text), $1::text FROM contacts "
    "RETURNING etag"
)
UPDATE_SQL = "UPDATE contacts SET vcard = $2::text, etag = md5($2::text) WHERE name = $1 RETURNING etag"
DELETE_SQL = "DELETE FROM contacts WHERE name = $1"
# The number of rows that the keys are spread over, read once at start-up.
ROWS_SQL = "SELECT count(*) FROM contacts"
# The statement of the readiness path.
HEALTH_SQL = "SELECT 1"

# Time limit for the database to become usable at start-up.
START_UP_SECONDS = 60
# Time between two tries at start-up.
PAUSE_SECONDS = 1
# Time limit of one connect, and of one statement.
TIMEOUT_SECONDS = 5

LARGEST_INTEGER = 2**31 - 1

log = logging.getLogger(__name__)


class DatabaseError(Exception):
    """The database gave no answer."""


class Contact(NamedTuple):
    """A contact in an answer: the body and its entity tag."""

    etag: str
    """md5 of the vCard, without quotes."""
    vcard: str
    """The vCard itself."""


class Entry(NamedTuple):
    """A contact in a list."""

    id: int
    """The primary key."""
    name: str
    """The last segment of its path."""
    etag: str
    """md5 of the vCard, without quotes."""
    length: int
    """The vCard's length in bytes."""
    vcard: str
    """The vCard itself; empty if the request does not ask for it."""


class Put(Enum):
    """The result of a PUT."""

    CREATED = auto()
    """The contact is new."""
    REPLACED = auto()
    """The contact replaced an older one."""
    REFUSED = auto()
    """Not written: the conditions of the request do not hold."""
    CONFLICT = auto()
    """Not written: another contact has this UID, or the contact of this name has another UID."""


class Deleted(Enum):
    """The result of a DELETE."""

    GONE = auto()
    REFUSED = auto()
    """Not deleted: the conditions of the request do not hold."""
    MISSING = auto()
    """No contact has this name."""


class Database:
    """The pool, open and warm, and the number of rows in the table."""

    def __init__(self, pool: asyncpg.Pool, rows: int) -> None:
        self._pool = pool
        self.rows = rows
        """Number of contacts at start-up, at least 1."""

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
                # By default asyncpg closes a connection after 50,000 statements or five idle minutes, and
                # prepares a statement again after five minutes. Each would happen during a measurement.
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

    async def named(self, name: str) -> Contact | None:
        """Return the contact of this name."""
        try:
            record = await self._pool.fetchrow(NAMED_SQL, name)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error
        return None if record is None else Contact(*record)

    async def page(self, after: int, *, vcards: bool) -> list[Entry]:
        """Return ``PAGE_ROWS`` contacts, or all that are left, whose keys are greater than ``after``."""
        return await self._entries(PAGE_SQL, after, vcards)

    async def entries_named(self, names: list[str], *, vcards: bool) -> list[Entry]:
        """Return the contacts of these names, in no order."""
        return await self._entries(NAMES_SQL, names, vcards)

    async def _entries(self, sql: str, *parameters: object) -> list[Entry]:
        try:
            records = await self._pool.fetch(sql, *parameters)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error
        return [Entry(*record) for record in records]

    async def collection_tag(self) -> str:
        """Return a tag that changes with every change of the address book."""
        try:
            return await self._pool.fetchval(COLLECTION_TAG_SQL)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error

    async def put(
        self, name: str, uid: str, vcard: str, allowed: Callable[[str | None], bool]
    ) -> tuple[Put, str]:
        """Write a contact, if ``allowed`` accepts the entity tag of the contact with this name.

        Also return the new entity tag, or the name of the conflicting contact.
        """
        async with self._writing() as connection:
            current = None
            for its_name, its_uid, etag in await connection.fetch(SAME_SQL, name, uid):
                if (its_name, its_uid) != (name, uid):
                    return Put.CONFLICT, its_name
                current = etag
            if not allowed(current):
                return Put.REFUSED, ""
            if current is not None:
                return Put.REPLACED, await connection.fetchval(UPDATE_SQL, name, vcard)
            return Put.CREATED, await connection.fetchval(INSERT_SQL, name, uid, vcard)

    async def delete(self, name: str, allowed: Callable[[str | None], bool]) -> Deleted:
        """Delete the contact of this name, if ``allowed`` accepts its entity tag."""
        async with self._writing() as connection:
            record = await connection.fetchrow(NAMED_SQL, name)
            if record is None:
                return Deleted.MISSING
            if not allowed(record["etag"]):
                return Deleted.REFUSED
            await connection.execute(DELETE_SQL, name)
            return Deleted.GONE

    @contextlib.asynccontextmanager
    async def _writing(self) -> AsyncIterator[asyncpg.pool.PoolConnectionProxy]:
        """Open a transaction that excludes other writers; one statement's time limit covers all of it."""
        try:
            async with (
                self._pool.acquire() as connection,
                asyncio.timeout(TIMEOUT_SECONDS),
                connection.transaction(),
            ):
                await connection.execute(LOCK_SQL)
                yield connection
        except FAILURES as error:
            raise _failure("the statement failed", error) from error

    async def check(self) -> None:
        """Show that the pool can run a statement."""
        try:
            await self._pool.fetchval(HEALTH_SQL)
        except FAILURES as error:
            raise _failure("the statement failed", error) from error

    def terminate(self) -> None:
        """Close every connection without waiting for it."""
        self._pool.terminate()


# The exceptions that asyncpg raises if the database or the connection fails.
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
