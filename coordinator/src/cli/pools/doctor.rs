//! `drover pools doctor`: what is wrong with a group, and the command that mends each. Called by `cli/pools`; talks proto
//! only. Silent where all is right.

use crate::cli::Globals;
use crate::cli::connect::{self, Admin};
use crate::cli::exit::{CliError, printable};
use crate::cli::output::{Format, Out, json, say, text, write_out, yaml};
use drover_proto::v1;
use serde::Serialize;
use std::fmt::Write as _;

/// A group, by its pool or by name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its pool; without a pool and a group, every pool that is an Auto Scaling group.
    pool: Option<String>,
    /// A group that is no pool (yet).
    #[arg(long, requires = "region", conflicts_with = "pool")]
    group: Option<String>,
    /// Region of the group.
    #[arg(long, requires = "group")]
    region: Option<String>,
    /// Role that is assumed for it.
    #[arg(long, requires = "group", value_name = "ARN")]
    role_arn: Option<String>,
    /// Mend what harms nothing: protection on, AZRebalance and ReplaceUnhealthy suspended, capacity rebalancing off.
    #[arg(long)]
    fix: bool,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct SurveyView {
    pub pool: Option<String>,
    pub group: String,
    pub region: String,
    pub role_arn: Option<String>,
    pub standing: String,
    pub min: Option<u32>,
    pub max: Option<u32>,
    pub desired: Option<u32>,
    pub running: Option<u32>,
    pub types: Vec<String>,
    pub findings: Vec<FindingView>,
    pub doubts: Vec<String>,
    /// What `--fix` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Vec<String>>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct FindingView {
    pub severity: String,
    pub kind: String,
    pub words: String,
    pub commands: Vec<String>,
    pub fixable: bool,
}

impl From<v1::GroupSurvey> for SurveyView {
    fn from(s: v1::GroupSurvey) -> Self {
        Self {
            pool: text(s.pool),
            group: s.group,
            region: s.region,
            role_arn: text(s.role_arn),
            standing: s.standing,
            min: s.sizes.map(|sizes| sizes.min),
            max: s.sizes.map(|sizes| sizes.max),
            desired: s.sizes.map(|sizes| sizes.desired),
            running: s.sizes.map(|sizes| sizes.running),
            types: s.types,
            findings: s
                .findings
                .into_iter()
                .map(|f| FindingView {
                    severity: f.severity,
                    kind: f.kind,
                    words: f.words,
                    commands: f.commands,
                    fixable: f.fixable,
                })
                .collect(),
            doubts: s.doubts,
            done: None,
        }
    }
}

impl SurveyView {
    fn count(&self, severity: &str) -> usize {
        let found = self.findings.iter().filter(|f| f.severity == severity);
        found.count()
    }

    fn title(&self) -> String {
        let group = format!("group {} in {}", self.group, self.region);
        match &self.pool {
            Some(pool) => format!("pool {pool} ({group})"),
            None => group,
        }
    }

    /// For people; empty where there is nothing to say. `wide` tells doubts of a right group as well.
    pub(super) fn page(&self, wide: bool) -> String {
        let mut page = String::new();
        let mut line = |depth: usize, text: &str| {
            let _ = writeln!(page, "{}{}", " ".repeat(depth), printable(text));
        };
        let doubts = wide || !self.findings.is_empty();
        if self.findings.is_empty() && (!wide || self.doubts.is_empty()) {
            return page;
        }
        line(0, &format!("{}:", self.title()));
        for found in &self.findings {
            let fix = if found.fixable {
                " (--fix does it)"
            } else {
                ""
            };
            line(2, &format!("{:<8}{}{fix}", found.severity, found.words));
            for command in &found.commands {
                line(12, command);
            }
        }
        for doubt in self.doubts.iter().filter(|_| doubts) {
            line(2, &format!("{:<8}{doubt}", "doubt"));
        }
        page
    }
}

/// A group as the service takes it.
pub(super) fn target(
    pool: Option<String>,
    group: Option<String>,
    region: Option<String>,
    role_arn: Option<String>,
) -> Option<v1::GroupTarget> {
    Some(v1::GroupTarget {
        pool: pool.unwrap_or_default(),
        group: group.unwrap_or_default(),
        region: region.unwrap_or_default(),
        role_arn: role_arn.unwrap_or_default(),
    })
}

/// Runs it. Something that must be mended makes it fail, with what was found on stdout.
///
/// # Errors
/// What the coordinator refused, that none answers, or that something must be mended.
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    let all = args.pool.is_none() && args.group.is_none();
    if all && args.fix {
        return Err(CliError::Usage(
            "--fix changes one group: name its pool, or give --group and --region".to_owned(),
        ));
    }
    let mut admin = connect::admin(globals).await?;
    if all {
        return every(&mut admin, out).await;
    }
    let of = target(args.pool, args.group, args.region, args.role_arn);
    let view = if args.fix {
        let ask = admin.ask(v1::MendGroupRequest { of });
        let reply = admin.client.mend_group(ask).await?.into_inner();
        for done in &reply.done {
            say(done);
        }
        if reply.done.is_empty() {
            say("there was nothing to mend that --fix may");
        }
        let mut view = SurveyView::from(reply.survey.unwrap_or_default());
        view.done = Some(reply.done);
        view
    } else {
        let ask = admin.ask(v1::SurveyGroupRequest { of });
        admin.client.survey_group(ask).await?.into_inner().into()
    };
    match out.format {
        Format::Json => write_out(json(&view)?.as_bytes())?,
        Format::Yaml => write_out(yaml(&view)?.as_bytes())?,
        Format::Table => write_out(view.page(false).as_bytes())?,
        Format::Wide => write_out(view.page(true).as_bytes())?,
    }
    verdict(&[view])
}

/// Every pool that is a group.
async fn every(admin: &mut Admin, out: Out) -> Result<(), CliError> {
    let ask = admin.ask(v1::ListPoolsRequest {});
    let pools = admin.client.list_pools(ask).await?.into_inner().pools;
    let mut views: Vec<SurveyView> = Vec::new();
    for pool in pools.into_iter().filter(|p| p.kind == "asg" && !p.orphaned) {
        let of = target(Some(pool.name), None, None, None);
        let ask = admin.ask(v1::SurveyGroupRequest { of });
        views.push(admin.client.survey_group(ask).await?.into_inner().into());
    }
    if views.is_empty() {
        say(
            "no pool is an Auto Scaling group; give --group and --region for one that is to become one",
        );
    }
    match out.format {
        Format::Json => write_out(json(&views)?.as_bytes())?,
        Format::Yaml => write_out(yaml(&views)?.as_bytes())?,
        wide => {
            let wide = wide == Format::Wide;
            let pages: String = views.iter().map(|view| view.page(wide)).collect();
            write_out(pages.as_bytes())?;
        }
    }
    verdict(&views)
}

fn verdict(views: &[SurveyView]) -> Result<(), CliError> {
    let must: usize = views.iter().map(|view| view.count("must")).sum();
    match must {
        0 => Ok(()),
        1 => Err(CliError::Failed("1 thing must be mended".to_owned())),
        more => Err(CliError::Failed(format!("{more} things must be mended"))),
    }
}
