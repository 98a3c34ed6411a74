"""The settings in the environment: ``DATABASE_URL``, ``POOL_SIZE``, ``PORT``, ``BASIC_AUTH``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


class SettingsError(Exception):
    """An environment variable is missing or wrong."""


@dataclass(frozen=True)
class Settings:
    """The server's settings, the same for every candidate."""

    database_url: str
    """URL of the database, with user and password."""
    pool_size: int
    """Connections to the database, all opened at start-up."""
    port: int
    """TCP port of the HTTP server."""
    credentials: str | None = field(repr=False)
    """``user:password`` that contacts require; ``None`` means no authentication."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        url = environment.get("DATABASE_URL")
        if url is None:
            raise SettingsError(
                "DATABASE_URL is not set: give postgresql://user:password@host:5432/name?sslmode=disable"
            )
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise SettingsError(f"DATABASE_URL is not a PostgreSQL URL: {error}") from error
        if parts.scheme not in ("postgresql", "postgres"):
            raise SettingsError("DATABASE_URL is not a PostgreSQL URL: it must begin with postgresql://")
        # The drivers' defaults differ: asyncpg uses TLS if the database offers it, tokio-postgres does not.
        if parse_qs(parts.query).get("sslmode") != ["disable"]:
            raise SettingsError(
                "DATABASE_URL must say sslmode=disable: the candidates are compared without TLS"
            )
        pool_size = _number(environment, "POOL_SIZE", default=10, maximum=1000)
        port = _number(environment, "PORT", default=8080, maximum=65535)
        credentials = environment.get("BASIC_AUTH")
        if credentials is not None and credentials.find(":") < 1:
            raise SettingsError("BASIC_AUTH must be user:password, with a user")
        return cls(
            database_url=url,
            pool_size=pool_size,
            port=port,
            credentials=credentials,
        )


def _number(environment: Mapping[str, str], name: str, *, default: int, maximum: int) -> int:
    value = environment.get(name)
    if value is None:
        return default
    number = int(value) if value.isascii() and value.isdigit() else 0
    if not 1 <= number <= maximum:
        raise SettingsError(f'{name} must be a whole number from 1 to {maximum}, not "{value}"')
    return number
