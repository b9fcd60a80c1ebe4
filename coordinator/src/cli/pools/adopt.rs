//! `drover pools adopt` and `adopted`: take a group into `observe`, and see what would have been done beside what happened.
//! Called by `cli/pools`; talks proto only.

pub mod view;

use super::doctor::{SurveyView, target};
use crate::cli::Globals;
use crate::cli::connect;
use crate::cli::duration;
use crate::cli::exit::CliError;
use crate::cli::output::{Format, Out, json, page, say, text, write_out, yaml};
use drover_proto::v1;
use serde::Serialize;
use view::AdoptionView;

/// Take a group into `observe`, and watch it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Auto Scaling group.
    #[arg(required_unless_present = "status")]
    group: Option<String>,
    /// Its region.
    #[arg(long, required_unless_present = "status")]
    region: Option<String>,
    /// Role that is assumed for it.
    #[arg(long, value_name = "ARN")]
    role_arn: Option<String>,
    /// How long it is watched before another mode is offered.
    #[arg(long = "for", value_name = "DURATION", default_value = "24h", value_parser = duration::parse_ms_positive)]
    for_ms: u64,
    /// Name of its pool; without one the pool that has it, or the group's name.
    #[arg(long)]
    name: Option<String>,
    /// Only show the adoptions.
    #[arg(long, conflicts_with_all = ["group", "region", "role_arn", "for_ms", "name"])]
    status: bool,
}

/// What would have been done beside what happened.
#[derive(Debug, clap::Args)]
pub struct AdoptedArgs {
    /// The pool; without one all of them.
    pool: Option<String>,
}

/// What adopting gave.
#[derive(Debug, Serialize)]
struct AdoptedView {
    survey: SurveyView,
    adoption: Option<AdoptionView>,
    config_table: Option<String>,
    appears: Option<String>,
}

/// Begins an adoption, or shows those that there are.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    if args.status {
        return adopted(globals, out, AdoptedArgs { pool: None }).await;
    }
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::AdoptGroupRequest {
        of: target(None, args.group, args.region, args.role_arn),
        name: args.name.unwrap_or_default(),
        for_ms: args.for_ms,
    });
    let answer = admin.client.adopt_group(ask).await?;
    connect::say_note(&answer);
    let reply = answer.into_inner();
    let view = AdoptedView {
        survey: reply.survey.unwrap_or_default().into(),
        adoption: reply.adoption.map(Into::into),
        config_table: text(reply.config_table),
        appears: text(reply.appears),
    };
    match out.format {
        Format::Json => return write_out(json(&view)?.as_bytes()),
        Format::Yaml => return write_out(yaml(&view)?.as_bytes()),
        Format::Table | Format::Wide => {}
    }
    let mut shown = view.survey.page(out.format == Format::Wide);
    if !shown.is_empty() {
        shown.push('\n');
    }
    if let Some(adoption) = &view.adoption {
        shown += &page(adoption, out.colour, duration::now_unix_ms());
    }
    if let Some(table) = &view.config_table {
        shown += "\nAdd to the coordinator's config file, and send it SIGHUP:\n\n";
        shown += table;
    }
    write_out(shown.as_bytes())?;
    if let Some(appears) = &view.appears {
        say(appears);
    }
    if !view.survey.findings.is_empty() {
        say(
            "nothing is changed in observe; what must be mended is to be mended before another mode",
        );
    }
    Ok(())
}

/// Shows one adoption, or all.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn adopted(globals: &Globals, out: Out, args: AdoptedArgs) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let one = args.pool.is_some();
    let ask = admin.ask(v1::ListAdoptionsRequest {
        pool: args.pool.unwrap_or_default(),
    });
    let found = admin.client.list_adoptions(ask).await?.into_inner();
    let views: Vec<AdoptionView> = found.adoptions.into_iter().map(Into::into).collect();
    match views.first().filter(|_| one) {
        Some(view) => out.one(view),
        None => out.list(&views),
    }
}
