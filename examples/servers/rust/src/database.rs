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

/// The only statement of a request for a contact.
const CONTACT_SQL: &str = "SELECT etag, vcard FROM contacts WHERE id = $1";
/// The same, by the contact's name in the address book.
const NAMED_SQL: &str = "SELECT etag, vcard FROM contacts WHERE name = $1";
/// A page of the address book. Each page is a separate statement, so no transaction waits for a slow client.
/// A contact that exists during the whole request is read exactly once.
const PAGE_SQL: &str = "SELECT id, name, etag, octet_length(vcard), CASE WHEN $2 THEN vcard ELSE '' END \
    FROM contacts WHERE id > $1 ORDER BY id LIMIT 250";
/// Rows of a full page: the limit in `PAGE_SQL`.
pub(crate) const PAGE_ROWS: usize = 250;
/// Contacts by their names.
const NAMES_SQL: &str = "SELECT id, name, etag, octet_length(vcard), CASE WHEN $2 THEN vcard ELSE '' END \
    FROM contacts WHERE name = ANY($1)";
/// Changes with every change of the address book.
const COLLECTION_TAG_SQL: &str =
    "SELECT coalesce(md5(string_agg(name || ' ' || etag, ',' ORDER BY id)), '') FROM contacts";
/// Writers wait for each other, and readers do not wait. The next statement's result stays true until the commit.
const LOCK_SQL: &str = "LOCK TABLE contacts IN SHARE ROW EXCLUSIVE MODE";
/// The contacts that a new contact may conflict with. The contact with the same UID comes first.
const SAME_SQL: &str =
    "SELECT name, uid, etag FROM contacts WHERE name = $1 OR uid = $2 ORDER BY uid = $2 DESC";
const INSERT_SQL: &str = "INSERT INTO contacts (id, uid, vcard, etag, name) \
    SELECT coalesce(max(id), 0) + 1, $2::text, $3::text, md5($3::text), $1::text FROM contacts RETURNING etag";
const UPDATE_SQL: &str =
    "UPDATE contacts SET vcard = $2::text, etag = md5($2::text) WHERE name = $1 RETURNING etag";
const DELETE_SQL: &str = "DELETE FROM contacts WHERE name = $1";
/// The number of rows that the keys are spread over, read once at start-up.
const ROWS_SQL: &str = "SELECT count(*) FROM contacts";
/// The statement of the readiness path.
const HEALTH_SQL: &str = "SELECT 1";

/// Time limit for the database to become usable at start-up.
const START_UP: Duration = Duration::from_secs(60);
/// Time between two tries at start-up.
const PAUSE: Duration = Duration::from_secs(1);
/// Time limit of one connect, and of one statement.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A contact in an answer: the body and its entity tag.
pub(crate) struct Contact {
    /// md5 of the vCard, without quotes.
    pub(crate) etag: String,
    /// The vCard itself.
    pub(crate) vcard: String,
}

/// A contact in a list.
pub(crate) struct Entry {
    /// The primary key.
    pub(crate) id: i32,
    /// The last segment of its path.
    pub(crate) name: String,
    /// md5 of the vCard, without quotes.
    pub(crate) etag: String,
    /// The vCard's length in bytes.
    pub(crate) length: i32,
    /// The vCard itself; empty if the request does not ask for it.
    pub(crate) vcard: String,
}

/// The result of a PUT.
pub(crate) enum Put {
    /// The contact is new, with this entity tag.
    Created(String),
    /// The contact replaced an older one, and has this entity tag.
    Replaced(String),
    /// Not written: the conditions of the request do not hold.
    Refused,
    /// Not written. The value is the name of the conflicting contact: it has the same UID, or the same name and
    /// another UID.
    Conflict(String),
}

/// The result of a DELETE.
pub(crate) enum Deleted {
    Gone,
    /// Not deleted: the conditions of the request do not hold.
    Refused,
    /// No contact has this name.
    Missing,
}

/// The reason why the database gave no answer.
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
    #[error("the table contacts has {0} rows, more than the largest integer key")]
    TooManyRows(i64),
    #[error("the pool cannot be built: {0}")]
    Pool(#[from] deadpool_postgres::BuildError),
    #[error("the database is not usable after {} s: {source}", START_UP.as_secs())]
    StartUp { source: Box<DatabaseError> },
}

/// An error with its causes, because the driver's own text is only "db error".
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

/// The pool, open and warm, and the number of rows in the table.
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

    /// Number of contacts at start-up, at least 1.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// The contact with this primary key.
    pub(crate) async fn contact(&self, id: i32) -> Result<Option<Contact>, DatabaseError> {
        let row = query(self.pool.get().await?, CONTACT_SQL, &[&id]).await?;
        Ok(row.map(|row| contact(&row)).transpose()?)
    }

    /// The contact of this name.
    pub(crate) async fn named(&self, name: &str) -> Result<Option<Contact>, DatabaseError> {
        let row = query(self.pool.get().await?, NAMED_SQL, &[&name]).await?;
        Ok(row.map(|row| contact(&row)).transpose()?)
    }

    /// Up to `PAGE_ROWS` contacts whose keys are greater than `after`; fewer only at the end of the table.
    pub(crate) async fn page(&self, after: i32, vcards: bool) -> Result<Vec<Entry>, DatabaseError> {
        self.entries(PAGE_SQL, &[&after, &vcards]).await
    }

    /// The contacts of these names, in no order.
    pub(crate) async fn entries_named(
        &self,
        names: &[&str],
        vcards: bool,
    ) -> Result<Vec<Entry>, DatabaseError> {
        self.entries(NAMES_SQL, &[&names, &vcards]).await
    }

    async fn entries(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Entry>, DatabaseError> {
        let client = self.pool.get().await?;
        let answer = within(async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, parameters).await
        })
        .await;
        let rows = checked(client, answer)?;
        rows.iter().map(|row| Ok(entry(row)?)).collect()
    }

    /// A tag that changes with every change of the address book.
    pub(crate) async fn collection_tag(&self) -> Result<String, DatabaseError> {
        let row = query(self.pool.get().await?, COLLECTION_TAG_SQL, &[]).await?;
        Ok(row.map_or_else(|| Ok(String::new()), |row| row.try_get(0))?)
    }

    /// Writes a contact, if `allowed` accepts the entity tag of the contact with this name.
    pub(crate) async fn put(
        &self,
        name: &str,
        uid: &str,
        vcard: &str,
        allowed: impl Fn(Option<&str>) -> bool,
    ) -> Result<Put, DatabaseError> {
        let mut client = self.pool.get().await?;
        let answer = within(async {
            let transaction = client.transaction().await?;
            transaction.batch_execute(LOCK_SQL).await?;
            let statement = transaction.prepare_cached(SAME_SQL).await?;
            let mut current = None;
            for row in transaction.query(&statement, &[&name, &uid]).await? {
                let (its_name, its_uid): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                if its_name != name || its_uid != uid {
                    return Ok(Put::Conflict(its_name));
                }
                current = Some(row.try_get::<_, String>(2)?);
            }
            if !allowed(current.as_deref()) {
                return Ok(Put::Refused);
            }
            let put = if current.is_some() {
                let statement = transaction.prepare_cached(UPDATE_SQL).await?;
                let row = transaction.query_one(&statement, &[&name, &vcard]).await?;
                Put::Replaced(row.try_get(0)?)
            } else {
                let statement = transaction.prepare_cached(INSERT_SQL).await?;
                let row = transaction
                    .query_one(&statement, &[&name, &uid, &vcard])
                    .await?;
                Put::Created(row.try_get(0)?)
            };
            transaction.commit().await?;
            Ok(put)
        })
        .await;
        checked(client, answer)
    }

    /// Deletes the contact of this name, if `allowed` accepts its entity tag.
    pub(crate) async fn delete(
        &self,
        name: &str,
        allowed: impl Fn(Option<&str>) -> bool,
    ) -> Result<Deleted, DatabaseError> {
        let mut client = self.pool.get().await?;
        let answer = within(async {
            let transaction = client.transaction().await?;
            transaction.batch_execute(LOCK_SQL).await?;
            let statement = transaction.prepare_cached(NAMED_SQL).await?;
            let Some(row) = transaction.query_opt(&statement, &[&name]).await? else {
                return Ok(Deleted::Missing);
            };
            if !allowed(Some(row.try_get(0)?)) {
                return Ok(Deleted::Refused);
            }
            let statement = transaction.prepare_cached(DELETE_SQL).await?;
            transaction.execute(&statement, &[&name]).await?;
            transaction.commit().await?;
            Ok(Deleted::Gone)
        })
        .await;
        checked(client, answer)
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
    checked(client, answer)
}

/// Returns the connection to the pool. After a timeout, closes it, because its next user would wait for the
/// hanging statement.
fn checked<T>(client: Object, answer: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
    if matches!(answer, Err(DatabaseError::Timeout)) {
        drop(Object::take(client));
    }
    answer
}

fn contact(row: &Row) -> Result<Contact, tokio_postgres::Error> {
    Ok(Contact {
        etag: row.try_get(0)?,
        vcard: row.try_get(1)?,
    })
}

fn entry(row: &Row) -> Result<Entry, tokio_postgres::Error> {
    Ok(Entry {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        etag: row.try_get(2)?,
        length: row.try_get(3)?,
        vcard: row.try_get(4)?,
    })
}

async fn within<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, DatabaseError> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(DatabaseError::Timeout),
    }
}
