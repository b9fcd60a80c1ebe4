//! `drover certificates issue`: a client certificate for a person or a script. The key is made here, written before
//! it is used, and never travels. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Out, Page, Sheet, say};
use super::{Globals, connect, duration};
use crate::files::private;
use clap::{Subcommand, ValueEnum};
use drover_proto::v1;
use serde::Serialize;
use std::path::PathBuf;

/// What can be done with client certificates.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a key here and have its certificate signed.
    Issue {
        /// Whose: letters, digits and . - _ @.
        name: String,
        /// What they may do.
        #[arg(long, value_enum)]
        role: Role,
        /// How long it is valid.
        #[arg(long = "ttl", value_name = "DURATION", default_value = "90d", value_parser = duration::parse_ms_positive)]
        ttl_ms: u64,
        /// Directory for NAME.key, NAME.crt and NAME.ca.crt.
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
        /// Replace files that are there.
        #[arg(long)]
        force: bool,
    },
}

/// What a person or script may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Role {
    /// See everything.
    Viewer,
    /// Also cordon, drain, request, pause, freeze.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    const fn wire(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

#[derive(Serialize)]
struct Issued {
    name: String,
    role: &'static str,
    key: String,
    cert: String,
    ca: String,
}

impl Sheet for Issued {
    fn sheet(&self, page: &mut Page, _now: u64) {
        page.line("Name", Some(&self.name));
        page.line("Role", Some(self.role));
        page.line("Key", Some(&self.key));
        page.line("Certificate", Some(&self.cert));
        page.line("CA", Some(&self.ca));
    }
}

/// Runs one verb.
///
/// # Errors
/// Files that cannot be written, what the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let Verb::Issue {
        name,
        role,
        ttl_ms,
        out: dir,
        force,
    } = verb;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
        return Err(CliError::Usage(format!(
            "{name:?} is not a name for a certificate; use letters, digits and . - _ @"
        )));
    }
    let [key_file, cert_file, ca_file] =
        ["key", "crt", "ca.crt"].map(|end| dir.join(format!("{name}.{end}")));
    if !force
        && let Some(there) = [&key_file, &cert_file, &ca_file]
            .into_iter()
            .find(|f| f.exists())
    {
        return Err(CliError::Failed(format!(
            "{} is there already; choose another --out or say --force",
            there.display()
        )));
    }
    let mut admin = connect::admin(globals).await?;
    let broken = |error: rcgen::Error| CliError::Failed(format!("cannot make a key: {error}"));
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(broken)?;
    let csr = rcgen::CertificateParams::default()
        .serialize_request(&key)
        .map_err(broken)?;
    private::replace(&key_file, key.serialize_pem().as_bytes())?;
    let ask = admin.ask(v1::IssueAdminCertificateRequest {
        name: name.clone(),
        role: role.wire().to_owned(),
        csr_der: csr.der().to_vec(),
        ttl_ms,
    });
    let reply = match admin.client.issue_admin_certificate(ask).await {
        Ok(reply) => reply.into_inner(),
        Err(status) => {
            // A key without a certificate is of no use; the refusal is what matters.
            drop(std::fs::remove_file(&key_file));
            return Err(status.into());
        }
    };
    private::replace(&cert_file, reply.certificate_pem.as_bytes())?;
    private::replace(&ca_file, reply.ca_pem.as_bytes())?;
    let [key, cert, ca] = [key_file, cert_file, ca_file].map(|f| f.display().to_string());
    say(&format!(
        "use it with `drover context add NAME --address HOST:PORT --ca {ca} --cert {cert} --key {key}`"
    ));
    out.one(&Issued {
        name,
        role: role.wire(),
        key,
        cert,
        ca,
    })
}
