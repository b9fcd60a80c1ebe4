//! Roles, credentials and regions.

use std::sync::Arc;

use drover_aws::{
    AwsApi, AwsSurvey, Budget, BudgetSettings, Budgeted, Call, FailureKind, Region, SdkAws,
    TokioClock,
};

use super::server::Canned;
use super::{here, reply, set_up, settings};

const ROLE: &str = "arn:aws:iam::123456789012:role/drover";

fn assumed(key: &str) -> String {
    let result = format!(
        "<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
        <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials><AssumedRoleUser>\
        <Arn>arn:aws:sts::123456789012:assumed-role/drover/drover</Arn><AssumedRoleId>AROA:drover</AssumedRoleId></AssumedRoleUser>"
    );
    reply("AssumeRole", &result)
}

fn nothing() -> String {
    reply("DescribeAutoScalingGroups", "<AutoScalingGroups/>")
}

#[tokio::test]
async fn a_region_with_a_role_is_asked_in_that_role() {
    let (server, aws) = set_up().await;
    server.says("AssumeRole", 200, &assumed("theirs")).says(
        "DescribeAutoScalingGroups",
        200,
        &nothing(),
    );
    let there = Region::new("eu-west-1").with_role(ROLE);
    for region in [&there, &here(), &there] {
        aws.describe_groups(region, &["g".into()])
            .await
            .expect("answers");
    }
    let asked = server.asked("DescribeAutoScalingGroups");
    let seen: Vec<_> = asked
        .iter()
        .map(|a| (a.region.as_str(), a.key.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("eu-west-1", "theirs"),
            ("us-east-1", "own"),
            ("eu-west-1", "theirs")
        ]
    );
    let assumed = server.asked("AssumeRole");
    assert_eq!(assumed.len(), 1, "credentials are kept until they expire");
    assert_eq!(
        (assumed[0].region.as_str(), assumed[0].key.as_str()),
        ("eu-west-1", "own")
    );
    let body = &assumed[0].body;
    assert!(
        body.contains("RoleSessionName=drover") && body.contains(ROLE),
        "{body}"
    );
}

#[tokio::test]
async fn a_role_that_cannot_be_assumed_stops_only_its_own_region() {
    let (server, aws) = set_up().await;
    let denied = "User: arn:aws:iam::1:user/x is not authorized to perform: sts:AssumeRole";
    server
        .refuses("AssumeRole", 403, "AccessDenied", denied)
        .says("DescribeAutoScalingGroups", 200, &nothing());
    let there = here().with_role(ROLE);
    let failed = aws
        .describe_groups(&there, &["g".into()])
        .await
        .expect_err("is denied");
    assert_eq!(
        (failed.kind, failed.code.as_deref()),
        (FailureKind::Permission, Some("AccessDenied"))
    );
    let text = failed.to_string();
    assert!(text.contains(ROLE) && text.contains(denied), "{text}");
    let change = aws
        .set_desired_capacity(&there, &"g".into(), 1)
        .await
        .expect_err("is denied");
    assert!(!change.may_have_applied, "it was never sent");
    aws.describe_groups(&here(), &["g".into()])
        .await
        .expect("the other account goes on");
}

#[tokio::test]
async fn expired_credentials_are_said_in_words_and_pass_when_mended() {
    let (server, aws) = set_up().await;
    let words = "The security token included in the request is expired";
    server
        .refuses("DescribeAutoScalingGroups", 403, "ExpiredToken", words)
        .says("DescribeAutoScalingGroups", 200, &nothing());
    let failed = aws
        .describe_groups(&here(), &["g".into()])
        .await
        .expect_err("has expired");
    assert_eq!(failed.kind, FailureKind::Permission);
    assert!(failed.is_credentials());
    let text = failed.to_string();
    assert!(
        text.contains("credentials have expired") && text.contains(words),
        "{text}"
    );
    assert_eq!(server.asked("DescribeAutoScalingGroups").len(), 1);
    aws.describe_groups(&here(), &["g".into()])
        .await
        .expect("fresh ones are taken");
    // Where the role's own credentials cannot be had for the same reason.
    server.refuses("AssumeRole", 403, "ExpiredTokenException", words);
    let failed = aws
        .describe_groups(&here().with_role(ROLE), &["g".into()])
        .await
        .expect_err("has expired");
    assert!(failed.is_credentials(), "{failed}");
}

#[tokio::test]
async fn an_sts_that_does_not_answer_says_nothing_about_permissions() {
    let server = Canned::start().await;
    server.says("AssumeRole", 503, "<html>busy</html>");
    let mut settings = settings(server.url());
    settings.read_attempts = 1;
    let aws = SdkAws::new(settings).await;
    let failed = aws
        .describe_groups(&here().with_role(ROLE), &["g".into()])
        .await
        .expect_err("no credentials");
    assert_eq!(failed.kind, FailureKind::Transient, "{failed}");
    assert!(failed.to_string().contains(ROLE), "{failed}");
}

#[tokio::test]
async fn a_region_that_does_not_exist_is_named() {
    let (server, aws) = set_up().await;
    let regions = |names: &[&str]| {
        let rows: String = names
            .iter()
            .map(|n| {
                format!(
                    "<item><regionName>{n}</regionName><optInStatus>opted-in</optInStatus></item>"
                )
            })
            .collect();
        format!(
            "<DescribeRegionsResponse><regionInfo>{rows}</regionInfo></DescribeRegionsResponse>"
        )
    };
    server
        .says("DescribeRegions", 200, &regions(&[super::REGION]))
        .refuses(
            "DescribeRegions",
            400,
            "InvalidParameterValue",
            "Invalid region names: ('us-esat-1')",
        )
        .refuses(
            "DescribeRegions",
            401,
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
        );
    aws.check_region(&here()).await.expect("is there");
    let wrong = aws
        .check_region(&"us-esat-1".into())
        .await
        .expect_err("is not there");
    assert_eq!(wrong.kind, FailureKind::Config);
    assert!(
        wrong.to_string().contains("no region \"us-esat-1\""),
        "{wrong}"
    );
    let closed = aws
        .check_region(&"af-south-1".into())
        .await
        .expect_err("is not enabled");
    assert!(
        closed.is_credentials() && closed.to_string().contains("has it enabled"),
        "{closed}"
    );
}

#[tokio::test]
async fn a_region_without_an_address_is_asked_for_at_home() {
    let server = Canned::start().await;
    server.says(
        "DescribeRegions",
        200,
        "<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>",
    );
    let mut settings = settings(server.url());
    let lost = Region::from("us-lost-1");
    // Nobody listens there, as nobody does at the address of a region that does not exist.
    settings
        .endpoints
        .by_region
        .insert(lost.clone(), "http://127.0.0.1:1".into());
    settings.read_attempts = 1;
    let aws = SdkAws::new(settings).await;
    let wrong = aws.check_region(&lost).await.expect_err("is not there");
    assert_eq!(wrong.kind, FailureKind::Config, "{wrong}");
    let silent = aws
        .describe_groups(&lost, &["g".into()])
        .await
        .expect_err("nobody answers");
    assert_eq!(silent.kind, FailureKind::Transient, "{silent}");
}

#[tokio::test]
async fn every_page_and_every_repetition_is_paid_for_and_counted() {
    let server = Canned::start().await;
    let page = |next: &str| {
        let result = format!("<Activities/>{next}");
        reply("DescribeScalingActivities", &result)
    };
    server
        .refuses(
            "DescribeScalingActivities",
            400,
            "Throttling",
            "Rate exceeded",
        )
        .says(
            "DescribeScalingActivities",
            200,
            &page("<NextToken>n</NextToken>"),
        )
        .refuses(
            "DescribeScalingActivities",
            503,
            "ServiceUnavailable",
            "later",
        )
        .says("DescribeScalingActivities", 200, &page(""));
    let budget = Arc::new(Budget::new(
        BudgetSettings::default(),
        Arc::new(TokioClock::start()),
    ));
    let sdk = SdkAws::new(settings(server.url()))
        .await
        .with_toll(budget.clone());
    let aws = Budgeted::new(sdk, budget.clone());
    aws.describe_activities(&here(), &"g".into(), 0)
        .await
        .expect("answers in the end");
    let all = budget.snapshot();
    let seen = all
        .iter()
        .find(|f| f.call == Call::DescribeScalingActivities)
        .expect("counted");
    assert_eq!(server.asked("DescribeScalingActivities").len(), 4);
    assert_eq!((seen.sent, seen.repeated, seen.throttled), (4, 2, 1));
    assert_eq!(seen.failed[&FailureKind::Transient], 1);
    let bucket = seen.bucket.as_ref().expect("limited");
    assert!(
        bucket.milli_per_second_now < bucket.limit.milli_per_second,
        "AWS throttled"
    );
}
