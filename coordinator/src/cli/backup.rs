//! `drover backup`: store and CA key in one sealed file, while the coordinator runs. Called by `cli`; talks proto only.
//! [`passphrase`] is also what `drover restore` uses, which is done by `app` on the coordinator's host.

use super::exit::CliError;
use super::output::say;
use super::{Globals, connect, duration};
use drover_proto::v1;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tokio_stream::StreamExt as _;

/// Fewest characters of a passphrase.
pub const PASSPHRASE_CHARS: usize = 12;

/// Where the passphrase comes from.
#[derive(Debug, Clone, clap::Args)]
pub struct PassphraseArgs {
    /// File whose first line is the passphrase ("-": stdin); else DROVER_BACKUP_PASSPHRASE is used.
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// Save the store and the CA key.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The new file; it must not exist.
    file: PathBuf,
    #[command(flatten)]
    passphrase: PassphraseArgs,
}

/// Restore a backup on the coordinator's host, while no coordinator runs. It starts frozen.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A file that `drover backup` wrote.
    pub file: PathBuf,
    /// State directory to fill; it must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,
    /// Where the passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

/// The passphrase, never from the command line.
///
/// # Errors
/// Usage error when it is missing or too short.
pub fn passphrase(args: &PassphraseArgs) -> Result<String, CliError> {
    let text = match &args.passphrase_file {
        Some(path) if path == Path::new("-") => {
            let mut line = String::new();
            std::io::stdin()
                .read_line(&mut line)
                .map_err(|error| CliError::file("read", path, &error))?;
            line
        }
        Some(path) => std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, &error))?,
        None => std::env::var("DROVER_BACKUP_PASSPHRASE").map_err(|_| {
            CliError::Usage(
                "no passphrase: give --passphrase-file FILE (- for stdin) or set DROVER_BACKUP_PASSPHRASE".to_owned(),
            )
        })?,
    };
    let first = text.lines().next().unwrap_or_default().to_owned();
    if first.chars().count() < PASSPHRASE_CHARS {
        return Err(CliError::Usage(format!(
            "the passphrase is too short; it needs at least {PASSPHRASE_CHARS} characters"
        )));
    }
    Ok(first)
}

/// Runs `backup`: written beside the file first, so that a half backup never bears its name.
///
/// # Errors
/// Files that cannot be written, what the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, args: BackupArgs) -> Result<(), CliError> {
    let passphrase = passphrase(&args.passphrase)?;
    if args.file.exists() {
        return Err(CliError::Failed(format!(
            "{} is there already; give a new name",
            args.file.display()
        )));
    }
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::BackupRequest { passphrase });
    let mut chunks = admin.client.backup(ask).await?.into_inner();
    let mut name = args.file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let done = fill(&partial, &mut chunks).await.and_then(|bytes| {
        std::fs::rename(&partial, &args.file)
            .map_err(|error| CliError::file("write", &args.file, &error))?;
        Ok(bytes)
    });
    match done {
        Ok(bytes) => {
            say(&format!(
                "{} written, {}",
                args.file.display(),
                duration::bytes(bytes)
            ));
            Ok(())
        }
        Err(error) => {
            // Nothing useful can be done when this fails as well; the first error is the one to tell.
            drop(std::fs::remove_file(&partial));
            Err(error)
        }
    }
}

async fn fill(
    path: &Path,
    chunks: &mut tonic::Streaming<v1::BackupChunk>,
) -> Result<u64, CliError> {
    let fail = |error: std::io::Error| CliError::file("write", path, &error);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(fail)?;
    let mut bytes: u64 = 0;
    while let Some(chunk) = chunks.next().await {
        let data = chunk?.data;
        file.write_all(&data).map_err(fail)?;
        bytes += data.len() as u64;
    }
    if bytes == 0 {
        return Err(CliError::Failed(
            "the coordinator sent an empty backup".to_owned(),
        ));
    }
    file.sync_all().map_err(fail)?;
    Ok(bytes)
}
