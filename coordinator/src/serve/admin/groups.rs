//! Surveys, mending and adoption of Auto Scaling groups. Used by `serve/admin`; the survey itself is behind a port.
//! **Invariant:** what a person lets mend is in the audit log before it is begun.

use super::refusal::{named, refuse, text};
use super::{Admin, Answer, given};
use crate::config::PoolConfig;
use crate::control::commands::{AdoptWish, CommandError};
use crate::control::journal::Change;
use crate::ports::survey::{GroupRef, GroupSurvey, SurveyAsk};
use crate::serve::convert::groups::{self, Target, target_from};
use drover_core::model::{Millis, Mode, PoolId};
use drover_proto::{limits, v1};
use std::sync::Arc;
use tonic::{Response, Status};

/// A drain where AWS ends a node is given this long at least, whatever grace its pool has.
const DRAIN: Millis = Millis::minutes(5);

impl Admin {
    fn surveyor(&self) -> Result<&Arc<dyn GroupSurvey>, Status> {
        self.survey.as_ref().ok_or_else(|| {
            Status::failed_precondition(
                "this coordinator was built without the feature aws: it can ask AWS nothing",
            )
        })
    }

    /// The group that is meant, and its pool where it has one.
    fn meant(&self, of: Option<v1::GroupTarget>) -> Result<(GroupRef, Option<PoolConfig>), Status> {
        match target_from(of).map_err(|bad| named(bad.0, &bad.1))? {
            Target::Pool(pool) => {
                let group = self.commands.group_of(&pool).map_err(refuse)?;
                let config = self.commands.pool_with(&group);
                Ok((group, config))
            }
            Target::Group(group) => {
                let config = self.commands.pool_with(&group);
                Ok((group, config))
            }
        }
    }

    /// What is known here of a group, and then what AWS says.
    async fn judged(
        &self,
        of: &GroupRef,
        pool: Option<&PoolConfig>,
    ) -> Result<v1::GroupSurvey, Status> {
        let surveyor = self.surveyor()?;
        let view = self.view().await?;
        let shown = pool.and_then(|pool| view.pool(pool.name.as_str()));
        let heard = view.nodes.iter().filter(|node| node.joined.is_some());
        let ask = SurveyAsk {
            mode: shown.map_or(Mode::Observe, |pool| pool.mode),
            max: shown.map(|pool| pool.config_max.unwrap_or(pool.max)),
            drain: pool.map_or(DRAIN, |pool| pool.grace.max(DRAIN)),
            agents: Some(heard.filter_map(|node| node.instance.clone()).collect()),
        };
        let found = surveyor.survey(of, &ask).await;
        Ok(groups::survey(pool.map(|pool| &pool.name), of, &found))
    }

    /// Judges a group.
    pub(super) async fn look_at(&self, wish: v1::SurveyGroupRequest) -> Answer<v1::GroupSurvey> {
        let (of, pool) = self.meant(wish.of)?;
        self.judged(&of, pool.as_ref()).await.map(Response::new)
    }

    /// Mends a group, and judges it again.
    pub(super) async fn mend(
        &self,
        by: String,
        wish: v1::MendGroupRequest,
    ) -> Answer<v1::MendGroupReply> {
        let (of, pool) = self.meant(wish.of)?;
        let surveyor = self.surveyor()?;
        let subject = pool.as_ref().map_or_else(
            || format!("{}/{}", of.region, of.group),
            |pool| pool.name.0.clone(),
        );
        self.note(&by, &subject, "asked for".to_owned()).await?;
        let mended = surveyor.mend(&of).await;
        let told = match &mended {
            Ok(done) if done.is_empty() => "nothing to do".to_owned(),
            Ok(done) => done.join("; "),
            Err(error) => format!("failed: {error}"),
        };
        self.note(&by, &subject, told).await?;
        self.commands.wake();
        let done = mended.map_err(|error| Status::failed_precondition(error.to_string()))?;
        let survey = Some(self.judged(&of, pool.as_ref()).await?);
        Ok(Response::new(v1::MendGroupReply { done, survey }))
    }

    async fn note(&self, by: &str, subject: &str, detail: String) -> Result<(), Status> {
        let mut change = Change::new();
        change.audit(by, "pool.mend", subject, detail);
        let written = self.commands.journal().commit(change).await;
        written
            .map(|_| ())
            .map_err(|error| refuse(CommandError::Commit(error)))
    }

    /// Judges a group and begins to watch it.
    pub(super) async fn take_on(
        &self,
        by: String,
        wish: v1::AdoptGroupRequest,
    ) -> Answer<v1::AdoptGroupReply> {
        text("name", &wish.name, limits::NAME_BYTES)?;
        let (of, pool) = self.meant(wish.of)?;
        let survey = self.judged(&of, pool.as_ref()).await?;
        let Some(sizes) = survey.sizes else {
            let why: Vec<&str> = survey.findings.iter().map(|f| f.words.as_str()).collect();
            return Err(Status::failed_precondition(why.join("; ")));
        };
        let wish = AdoptWish {
            group: of.clone(),
            name: given(&wish.name).map(str::to_owned),
            span: Millis(wish.for_ms),
        };
        let done = self.commands.adopt(&by, &wish).await.map_err(refuse)?;
        let id = done.of;
        let found = self.commands.found_every(&of).filter(|_| pool.is_none());
        let appears = found.map_or_else(String::new, |every| {
            format!(
                "discovery looks in {} every {} s: the group becomes a pool by itself once it has the tag drover:owner",
                of.region,
                every.0 / 1_000
            )
        });
        let config_table = if pool.is_some() || found.is_some() {
            String::new()
        } else {
            table(&id, &of, sizes.max)
        };
        let adoption = self.adoptions_of(id.as_str()).await?.pop();
        let reply = v1::AdoptGroupReply {
            survey: Some(survey),
            adoption,
            config_table,
            appears,
        };
        Ok(super::shown::noted(Response::new(reply), done.unchanged))
    }

    /// Adoptions: of one pool, or all.
    pub(super) async fn adoptions_of(&self, pool: &str) -> Result<Vec<v1::Adoption>, Status> {
        text("pool", pool, limits::NAME_BYTES)?;
        let view = self.commands.view();
        let all = self.commands.adoptions().await.map_err(refuse)?;
        let found: Vec<v1::Adoption> = all
            .iter()
            .filter(|(id, _)| pool.is_empty() || id.as_str() == pool)
            .map(|(id, record)| {
                let shown = view.pool(id.as_str()).filter(|pool| pool.kind.is_some());
                groups::adoption(id, record, shown.map(|pool| pool.mode))
            })
            .collect();
        if found.is_empty() && !pool.is_empty() {
            return Err(Status::not_found(format!(
                "no adoption of a pool {pool:?}: `drover pools adopt GROUP --region REGION` begins one"
            )));
        }
        Ok(found)
    }
}

/// What makes a group a pool, for the config file.
fn table(id: &PoolId, of: &GroupRef, max: u32) -> String {
    // The names have no quotes or backslashes in AWS, but nothing here relies on it.
    let text = |value: &str| format!("{value:?}");
    let mut lines = vec![
        "[[pool]]".to_owned(),
        format!("name = {}", text(id.as_str())),
        "kind = \"asg\"".to_owned(),
        format!("region = {}", text(&of.region)),
        format!("group = {}", text(&of.group)),
        "mode = \"observe\"".to_owned(),
        format!("max = {max}"),
    ];
    if let Some(role) = &of.role {
        lines.push(format!("role_arn = {}", text(role)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_a_config_that_is_taken() {
        let of = GroupRef {
            region: "us-east-1".into(),
            role: Some("arn:aws:iam::123456789012:role/drover".into()),
            group: "team a/p5".into(),
        };
        let text = table(&PoolId::from("p5"), &of, 12);
        let head = "[server]\nlisten = \"127.0.0.1:1\"\n";
        let config = crate::config::parse(&format!("{head}{text}")).expect("a sound config");
        let pool = &config.pools[0];
        assert_eq!((pool.max, pool.mode), (12, Mode::Observe));
        assert_eq!(pool.name, PoolId::from("p5"));
    }
}
