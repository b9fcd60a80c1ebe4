//! What a store's file looks like, and everything that is checked before one is used. Called by `sqlite`; nothing
//! here changes a file that is not known to be a sound store of ours.

use super::super::new_store_id;
use super::engine::{meta_number, set_meta_number};
use crate::files::private;
use crate::ports::store::{Entry, Fence};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "DROV": marks the file as ours (SQLite's application id).
const APPLICATION_ID: u32 = 0x4452_4F56;
/// Version of the tables below (SQLite's user version). One release may read what the next one writes.
const SCHEMA_VERSION: u32 = 1;

const SCHEMA: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, number INTEGER, text TEXT) WITHOUT ROWID;
CREATE TABLE kv (key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL, revision INTEGER NOT NULL);
";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Cannot be read or written.
    #[error("cannot open the store {}; see that the file and its directory belong to the user who runs drover", path.display())]
    Access {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something else lies there.
    #[error("{} is not a store of drover ({what}); name another state_dir, or move the file away", path.display())]
    Foreign {
        /// File.
        path: PathBuf,
        /// What it seems to be.
        what: String,
    },
    /// Cut off or overwritten.
    #[error(
        "the store {} is damaged ({detail}); move it and its -wal and -shm files away, then run `drover restore BACKUP`",
        path.display()
    )]
    Damaged {
        /// File.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// Written by a later release.
    #[error(
        "the store {} was written by a newer release (schema {found}, this one knows {SCHEMA_VERSION}); run that release",
        path.display()
    )]
    Newer {
        /// File.
        path: PathBuf,
        /// Its schema version.
        found: u32,
    },
    /// No thread could be started.
    #[error("cannot start the store's thread")]
    Thread {
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

/// An open store, leadership taken.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) store_id: String,
    pub(super) fence: Fence,
}

fn classify(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => OpenError::Damaged {
            path: path.to_owned(),
            detail: error.to_string(),
        },
        _ => OpenError::Access {
            path: path.to_owned(),
            source: Box::new(error),
        },
    }
}

/// A connection to a file that exists.
pub(super) fn connect(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| classify(path, e))?;
    connection
        .busy_timeout(Duration::from_secs(10))
        .and_then(|()| connection.pragma_update(None, "synchronous", "FULL"))
        .map_err(|e| classify(path, e))?;
    Ok(connection)
}

/// Opens, checks, and takes the leadership.
pub(super) fn open(path: &Path) -> Result<Opened, OpenError> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            private::create(path).map_err(|source| OpenError::Access {
                path: path.to_owned(),
                source: Box::new(source),
            })?;
            0
        }
        Err(source) => {
            return Err(OpenError::Access {
                path: path.to_owned(),
                source: Box::new(source),
            });
        }
    };
    if size > 0 {
        check_header(path)?;
    }
    let mut connection = connect(path)?;
    let classified = |error| classify(path, error);
    if size == 0 {
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(classified)?;
        create(&mut connection, &new_store_id()).map_err(classified)?;
    } else {
        check(&connection, path)?;
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(classified)?;
    }
    let (store_id, fence) = lead(&mut connection).map_err(classified)?;
    // The main file holds all there is now: whoever copies or finds it without its -wal has a whole, if older, store.
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(classified)?;
    Ok(Opened {
        connection,
        store_id,
        fence,
    })
}

/// The first bytes tell a database from anything else, without touching it.
fn check_header(path: &Path) -> Result<(), OpenError> {
    use std::io::Read;
    let access = |source: std::io::Error| OpenError::Access {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let mut header = Vec::new();
    let file = std::fs::File::open(path).map_err(access)?;
    file.take(100).read_to_end(&mut header).map_err(access)?;
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
            what: "no SQLite database".into(),
        });
    }
    if header.len() < 100 {
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            detail: format!("only {} bytes are left", header.len()),
        });
    }
    Ok(())
}

/// Whose file it is, of which version, and whether it is whole.
fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let pragma = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, u32>(0))
            .map_err(|error| classify(path, error))
    };
    let application = pragma("application_id")?;
    let version = pragma("user_version")?;
    if application != APPLICATION_ID {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
            what: format!("a SQLite database of another program, application id {application:#x}"),
        });
    }
    if version > SCHEMA_VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
        });
    }
    let detail = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        .map_err(|error| classify(path, error))?;
    if detail != "ok" {
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            detail,
        });
    }
    Ok(())
}

/// Tables, marks and first numbers in one transaction: a crash leaves nothing or all. Two that start at once: the
/// second finds it done.
fn create(connection: &mut Connection, store_id: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.execute_batch(SCHEMA)?;
        let mut insert =
            transaction.prepare("INSERT INTO meta (name, number, text) VALUES (?1, ?2, ?3)")?;
        insert.execute(params!["store_id", None::<i64>, store_id])?;
        insert.execute(params!["fence", 0, None::<&str>])?;
        insert.execute(params!["revision", 0, None::<&str>])?;
    }
    transaction.commit()
}

/// One more than every leader before.
fn lead(connection: &mut Connection) -> rusqlite::Result<(String, Fence)> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let fence = meta_number(&transaction, "fence")? + 1;
    set_meta_number(&transaction, "fence", fence)?;
    let store_id =
        transaction.query_row("SELECT text FROM meta WHERE name = 'store_id'", [], |row| {
            row.get(0)
        })?;
    transaction.commit()?;
    Ok((store_id, Fence(fence)))
}

/// A consistent copy of a store that others may be writing.
pub(super) fn backup(from: &Path, to: &Path) -> Result<(), OpenError> {
    let source = connect(from)?;
    let classified = |error| classify(to, error);
    private::create(to).map_err(|source| OpenError::Access {
        path: to.to_owned(),
        source: Box::new(source),
    })?;
    let mut target = Connection::open(to).map_err(classified)?;
    rusqlite::backup::Backup::new(&source, &mut target)
        .and_then(|backup| {
            // All pages in one step: readers do not hold writers up, and no step has to begin anew.
            backup.run_to_completion(i32::MAX, Duration::from_millis(5), None)
        })
        .map_err(classified)?;
    // One file that needs no -wal beside it.
    target
        .pragma_update(None, "journal_mode", "DELETE")
        .map_err(classified)
}

/// Writes a store file with this content: how an engine without a file of its own is backed up.
pub(crate) fn write_copy(
    to: &Path,
    store_id: &str,
    fence: Fence,
    revision: u64,
    entries: &[Entry],
) -> Result<(), OpenError> {
    private::create(to).map_err(|source| OpenError::Access {
        path: to.to_owned(),
        source: Box::new(source),
    })?;
    let mut connection = connect(to)?;
    (|| {
        create(&mut connection, store_id)?;
        let transaction = connection.transaction()?;
        set_meta_number(&transaction, "fence", fence.0)?;
        set_meta_number(&transaction, "revision", revision)?;
        for entry in entries {
            transaction.execute(
                "INSERT INTO kv (key, value, revision) VALUES (?1, ?2, ?3)",
                params![entry.key, entry.value, entry.revision.0.cast_signed()],
            )?;
        }
        transaction.commit()
    })()
    .map_err(|error| classify(to, error))
}
