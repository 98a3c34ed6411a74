//! The pool of PostgreSQL connections and the statements sent through it.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod,
    Runtime,
};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row};

use crate::settings::Settings;

/// The one statement of a request for a contact.
const CONTACT_SQL: &str = "SELECT etag, vcard FROM contacts WHERE id = $1";
/// Read once at start-up: the keys are spread over this many rows.
const ROWS_SQL: &str = "SELECT count(*) FROM contacts";
/// What the readiness path runs.
const HEALTH_SQL: &str = "SELECT 1";

/// How long the database may take to become usable at start-up.
const START_UP: Duration = Duration::from_secs(60);
/// Time between two tries at start-up.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one connect, or one statement, may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A contact as it is sent: the body and its entity tag.
pub(crate) struct Contact {
    /// md5 of the vCard, without quotes.
    pub(crate) etag: String,
    /// The vCard itself.
    pub(crate) vcard: String,
}

/// Why the database gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("no connection: {}", causes(.0))]
    Connection(#[from] PoolError),
    #[error("the statement failed: {}", causes(.0))]
    Statement(#[from] tokio_postgres::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the table contacts is empty")]
    Empty,
    #[error("the table contacts has {0} rows, more than an integer key can tell apart")]
    TooManyRows(i64),
    #[error("the pool cannot be built: {0}")]
    Pool(#[from] deadpool_postgres::BuildError),
    #[error("the database is not usable after {} s: {source}", START_UP.as_secs())]
    StartUp { source: Box<DatabaseError> },
}

/// An error with its causes: the driver's own text alone is as short as "db error".
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

/// The pool, open and warm, and what was learnt about the table.
pub(crate) struct Database {
    pool: Pool,
    rows: u32,
}

impl Database {
    /// Opens every connection of the pool, prepares the statement on each and counts the rows.
    /// Tries again for a minute, because a server may start before its database.
    pub(crate) async fn connect(settings: &Settings) -> Result<Self, DatabaseError> {
        let mut config = settings.database.clone();
        config.connect_timeout(TIMEOUT);
        let manager = Manager::from_config(
            config,
            NoTls,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let pool = Pool::builder(manager)
            .max_size(settings.pool_size)
            .runtime(Runtime::Tokio1)
            // The connection used last is used next, as in asyncpg's pool.
            .queue_mode(QueueMode::Lifo)
            .post_create(Hook::async_fn(|client, _| {
                Box::pin(async move {
                    within(client.prepare_cached(CONTACT_SQL))
                        .await
                        .map(|_| ())
                        .map_err(|error| HookError::message(error.to_string()))
                })
            }))
            .build()?;

        let deadline = Instant::now() + START_UP;
        loop {
            match rows_of(&pool, settings.pool_size).await {
                Ok(rows) => return Ok(Self { pool, rows }),
                Err(error) if Instant::now() + PAUSE >= deadline => {
                    return Err(DatabaseError::StartUp {
                        source: Box::new(error),
                    });
                }
                Err(error) => {
                    let left = (deadline - Instant::now()).as_secs();
                    tracing::warn!("waiting for the database, {left} s left: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Number of contacts, at least 1, as counted at start-up.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// The contact with this primary key.
    pub(crate) async fn contact(&self, id: i32) -> Result<Option<Contact>, DatabaseError> {
        let row = query(self.pool.get().await?, CONTACT_SQL, &[&id]).await?;
        row.map(|row| {
            Ok(Contact {
                etag: row.try_get(0)?,
                vcard: row.try_get(1)?,
            })
        })
        .transpose()
    }

    /// Shows that the pool can run a statement.
    pub(crate) async fn check(&self) -> Result<(), DatabaseError> {
        query(self.pool.get().await?, HEALTH_SQL, &[]).await?;
        Ok(())
    }
}

/// Fills the pool and counts the contacts.
async fn rows_of(pool: &Pool, pool_size: usize) -> Result<u32, DatabaseError> {
    let mut clients = Vec::with_capacity(pool_size);
    for _ in 0..pool_size {
        clients.push(pool.get().await?);
    }
    let row = within(clients[0].query_one(ROWS_SQL, &[])).await?;
    let count: i64 = row.try_get(0)?;
    if count < 1 {
        return Err(DatabaseError::Empty);
    }
    i32::try_from(count)
        .map(i32::unsigned_abs)
        .map_err(|_| DatabaseError::TooManyRows(count))
}

/// Runs a statement, prepared once on each connection.
async fn query(
    client: Object,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, DatabaseError> {
    let answer = within(async {
        let statement = client.prepare_cached(sql).await?;
        client.query_opt(&statement, parameters).await
    })
    .await;
    if matches!(answer, Err(DatabaseError::Timeout)) {
        // The next user of this connection would wait behind the statement that hangs.
        drop(Object::take(client));
    }
    answer
}

async fn within<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, DatabaseError> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(DatabaseError::Timeout),
    }
}
