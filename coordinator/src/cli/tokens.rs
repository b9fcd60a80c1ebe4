//! `drover tokens`: join tokens for agents. Called by `cli`; talks proto only. The text is shown once.

use super::exit::CliError;
use super::output::{
    Cell, Column, Format, Out, Tabled, Tone, json, number, say, text, write_out, yaml,
};
use super::{Globals, connect, duration};
use clap::Subcommand;
use drover_proto::v1;
use serde::Serialize;

/// What can be done with join tokens.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A new token; its text goes to stdout, once.
    Create {
        /// Pool of the nodes that use it; none: supply in no pool.
        #[arg(long, default_value = "")]
        pool: String,
        /// How many nodes may use it.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        uses: u32,
        /// How long it may be used.
        #[arg(long = "ttl", value_name = "DURATION", default_value = "1h", value_parser = duration::parse_ms_positive)]
        ttl_ms: u64,
        /// Only for this host name.
        #[arg(long, default_value = "")]
        host: String,
    },
    /// All tokens, without their texts.
    List,
    /// Let nobody use it any more; nodes that did stay.
    Revoke {
        /// Its id.
        id: String,
    },
}

/// A token.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct TokenView {
    pub id: String,
    pub pool: Option<String>,
    pub host: Option<String>,
    pub max_uses: u32,
    pub uses: u32,
    pub created_unix_ms: Option<u64>,
    pub expires_unix_ms: Option<u64>,
    pub by: Option<String>,
    pub revoked: bool,
    pub nodes: Vec<String>,
}

/// A token just made.
#[derive(Debug, Clone, Serialize)]
struct Created {
    #[serde(flatten)]
    token: TokenView,
    text: String,
}

impl From<v1::Token> for TokenView {
    fn from(t: v1::Token) -> Self {
        Self {
            id: t.id,
            pool: text(t.pool),
            host: text(t.host),
            max_uses: t.max_uses,
            uses: t.uses,
            created_unix_ms: number(t.created_unix_ms),
            expires_unix_ms: number(t.expires_unix_ms),
            by: text(t.by),
            revoked: t.revoked,
            nodes: t.nodes,
        }
    }
}

impl TokenView {
    fn state(&self, now: u64) -> Cell {
        if self.revoked {
            Cell::toned("revoked", Tone::Bad)
        } else if self.expires_unix_ms.is_some_and(|t| t <= now) {
            Cell::toned("expired", Tone::Plain)
        } else if self.uses >= self.max_uses {
            Cell::toned("used", Tone::Plain)
        } else {
            Cell::toned("valid", Tone::Good)
        }
    }
}

impl Tabled for TokenView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ID", |t, _| (&t.id).into()),
            Column::new("POOL", |t, _| (&t.pool).into()),
            Column::new("STATE", Self::state),
            Column::new("USES", |t, _| format!("{}/{}", t.uses, t.max_uses).into()),
            Column::new("HOST", |t, _| (&t.host).into()),
            Column::new("EXPIRES-IN", |t, now| {
                let left = t
                    .expires_unix_ms
                    .filter(|e| *e > now)
                    .map(|e| duration::span(e - now));
                left.into()
            }),
            Column::new("BY", |t, _| (&t.by).into()),
            Column::new("AGE", |t, now| duration::age(now, t.created_unix_ms).into()),
            Column::wide("NODES", |t, _| t.nodes.join(",").into()),
        ]
    }
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    match verb {
        Verb::Create {
            pool,
            uses,
            ttl_ms,
            host,
        } => {
            let ask = admin.ask(v1::CreateTokenRequest {
                pool,
                max_uses: uses,
                ttl_ms,
                host,
            });
            let reply = admin.client.create_token(ask).await?.into_inner();
            let created = Created {
                token: reply.token.unwrap_or_default().into(),
                text: reply.text,
            };
            let text = match out.format {
                Format::Json => json(&created)?,
                Format::Yaml => yaml(&created)?,
                _ => {
                    say(&format!(
                        "token {} for {}, {} use(s), valid for {}; it is shown only now",
                        created.token.id,
                        created
                            .token
                            .pool
                            .as_deref()
                            .map_or_else(|| "no pool".to_owned(), |p| format!("pool {p}")),
                        created.token.max_uses,
                        duration::exact(ttl_ms),
                    ));
                    format!("{}\n", created.text)
                }
            };
            write_out(text.as_bytes())
        }
        Verb::List => {
            let ask = admin.ask(v1::ListTokensRequest {});
            let tokens = admin.client.list_tokens(ask).await?.into_inner().tokens;
            let tokens: Vec<TokenView> = tokens.into_iter().map(Into::into).collect();
            out.list(&tokens)
        }
        Verb::Revoke { id } => {
            let ask = admin.ask(v1::RevokeTokenRequest { id });
            let token = admin.client.revoke_token(ask).await?.into_inner();
            out.changed(&TokenView::from(token))
        }
    }
}
