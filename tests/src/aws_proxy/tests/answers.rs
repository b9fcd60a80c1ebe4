//! Answers that moto lacks.

use super::*;

#[tokio::test]
async fn spot_prices_and_reservations_are_the_scenarios() {
    let proxy = proxy(from(json!({
        "spot_prices": [
            {"region": "us-east-1", "instance_type": "g5.xlarge", "zone": "us-east-1a", "usd_per_hour": "0.4012", "since_ms_ago": 60000},
            {"instance_type": "p4d.24xlarge", "zone": "us-east-1b", "usd_per_hour": "9.5"},
            {"region": "us-west-2", "instance_type": "g5.xlarge", "zone": "us-west-2a", "usd_per_hour": "0.3"}],
        "reservations": [
            {"id": "cr-1", "instance_type": "p4d.24xlarge", "zone": "us-east-1a", "total": 4, "available": 3},
            {"id": "cr-2", "instance_type": "p5.48xlarge", "zone": "us-east-1b", "total": 2, "available": 2, "block": true,
             "targeted": true, "state": "scheduled", "starts_in_ms": 1000, "ends_in_ms": 5000}]})))
    .await;
    let form = [
        ("InstanceType.1", "g5.xlarge"),
        ("ProductDescription.1", "Linux/UNIX"),
    ];
    let text = proxy
        .call(EAST, Service::Ec2, "DescribeSpotPriceHistory", &form)
        .await
        .expect("answers");
    assert_eq!(texts(&text, "spotPrice"), ["0.4012"]);
    let text = proxy
        .call(EAST, Service::Ec2, "DescribeCapacityReservations", &[])
        .await
        .expect("answers");
    assert_eq!(
        texts(&text, "reservationType"),
        ["default", "capacity-block"]
    );
    assert_eq!(texts(&text, "endDate").len(), 1);
    let form = [
        ("Filter.1.Name", "state"),
        ("Filter.1.Value.1", "scheduled"),
    ];
    let text = proxy
        .call(EAST, Service::Ec2, "DescribeCapacityReservations", &form)
        .await
        .expect("answers");
    assert_eq!(texts(&text, "capacityReservationId"), ["cr-2"]);
    let form = [("CapacityReservationId.1", "cr-9")];
    let text = proxy
        .call(EAST, Service::Ec2, "DescribeCapacityReservations", &form)
        .await
        .expect_err("is refused");
    assert_eq!(
        texts(&text, "Code"),
        ["InvalidCapacityReservationId.NotFound"]
    );
}

#[tokio::test]
async fn permissions_are_simulated_enforced_and_dry_run() {
    let proxy = field("perm", from(json!({"permissions": [
        {"action": "autoscaling:SetDesiredCapacity", "decision": "explicit_deny", "simulated": "allowed"},
        {"action": "autoscaling:Terminate*"},
        {"region": "us-west-2", "action": "ec2:RunInstances"}]})))
    .await;
    let form = [
        ("PolicySourceArn", "arn:aws:iam::123456789012:user/x"),
        ("ActionNames.member.1", "autoscaling:SetDesiredCapacity"),
        (
            "ActionNames.member.2",
            "autoscaling:TerminateInstanceInAutoScalingGroup",
        ),
        ("ActionNames.member.3", "ec2:CreateFleet"),
    ];
    let text = proxy
        .call(EAST, Service::Iam, "SimulatePrincipalPolicy", &form)
        .await
        .expect("answers");
    assert_eq!(
        texts(&text, "EvalDecision"),
        ["allowed", "implicitDeny", "allowed"]
    );
    let form = [("AutoScalingGroupName", "perm"), ("DesiredCapacity", "1")];
    let text = proxy
        .call(EAST, Service::AutoScaling, "SetDesiredCapacity", &form)
        .await
        .expect_err("is refused");
    assert_eq!(texts(&text, "Code"), ["AccessDenied"]);
    assert!(
        text.contains("not authorized to perform: autoscaling:SetDesiredCapacity"),
        "{text}"
    );
    let run = |version| {
        [
            ("LaunchTemplate.LaunchTemplateName", "perm"),
            ("LaunchTemplate.Version", version),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("DryRun", "true"),
        ]
    };
    let text = proxy
        .call(EAST, Service::Ec2, "RunInstances", &run("$Latest"))
        .await
        .expect_err("a dry run is an error");
    assert_eq!(texts(&text, "Code"), ["DryRunOperation"]);
    let text = proxy
        .call(EAST, Service::Ec2, "RunInstances", &run("7"))
        .await
        .expect_err("no such version");
    assert!(
        texts(&text, "Code")[0].contains("VersionNotFound"),
        "{text}"
    );
    let text = proxy
        .call("us-west-2", Service::Ec2, "RunInstances", &run("$Latest"))
        .await
        .expect_err("is refused");
    assert_eq!(texts(&text, "Code"), ["UnauthorizedOperation"]);
    assert_eq!(proxy.ledger().launches.len(), 0);
}

#[tokio::test]
async fn quotas_speak_json_and_sts_passes() {
    let proxy = proxy(from(json!({"quotas": [
        {"region": "us-west-2", "code": "L-417A185B", "name": "Running On-Demand P instances", "value": 192.0}]})))
    .await;
    let ask = async |region: &str| {
        let body = json!({"ServiceCode": "ec2"});
        let reply = proxy
            .call_json(
                region,
                "servicequotas",
                "ServiceQuotasV20190624.ListServiceQuotas",
                &body,
            )
            .await;
        reply.expect("answers")["Quotas"]
            .as_array()
            .expect("a list")
            .len()
    };
    assert_eq!(ask("us-west-2").await, 1);
    assert_eq!(ask(EAST).await, 8, "what is not named is plenty");
    let text = proxy
        .call(EAST, Service::Sts, "GetCallerIdentity", &[])
        .await
        .expect("answers");
    assert!(texts(&text, "Arn")[0].starts_with("arn:aws:"), "{text}");
    let form = [
        ("RoleArn", "arn:aws:iam::123456789012:role/r"),
        ("RoleSessionName", "s"),
    ];
    let text = proxy
        .call(EAST, Service::Sts, "AssumeRole", &form)
        .await
        .expect("answers");
    assert_eq!(texts(&text, "SessionToken").len(), 1);
}

#[tokio::test]
async fn wrong_regions_and_expired_credentials_are_refused_as_aws_does() {
    let proxy = proxy(from(json!({"faults": [{"region": "us-west-2", "effect": {"error":
        {"status": 403, "code": "ExpiredToken", "message": "The security token included in the request is expired"}}}]})))
    .await;
    let form = [("RegionName.1", "us-esat-1")];
    let text = proxy
        .call(EAST, Service::Ec2, "DescribeRegions", &form)
        .await
        .expect_err("is refused");
    assert_eq!(texts(&text, "Code"), ["InvalidParameterValue"]);
    let text = proxy
        .call(
            "us-esat-1",
            Service::AutoScaling,
            "DescribeAutoScalingGroups",
            &[],
        )
        .await
        .expect_err("is refused");
    assert!(
        text.contains("Credential should be scoped to a valid region"),
        "{text}"
    );
    proxy
        .call(
            EAST,
            Service::Ec2,
            "DescribeRegions",
            &[("RegionName.1", EAST)],
        )
        .await
        .expect("is known");
    let text = proxy
        .call("us-west-2", Service::Ec2, "DescribeRegions", &[])
        .await
        .expect_err("is refused");
    assert_eq!(texts(&text, "Code"), ["ExpiredToken"]);
    proxy
        .call_json("us-west-2", "sqs", "AmazonSQS.ListQueues", &json!({}))
        .await
        .expect_err("in JSON too");
}

#[tokio::test]
async fn queues_pass_through_to_moto() {
    let proxy = proxy(Scenario::default()).await;
    let sqs = async |action: &str, body: Value| {
        let target = format!("AmazonSQS.{action}");
        proxy
            .call_json(EAST, "sqs", &target, &body)
            .await
            .expect("answers")
    };
    let url = sqs("CreateQueue", json!({"QueueName": "through"})).await["QueueUrl"]
        .as_str()
        .expect("a URL")
        .to_owned();
    sqs(
        "SendMessage",
        json!({"QueueUrl": url, "MessageBody": "hello"}),
    )
    .await;
    let got = sqs(
        "ReceiveMessage",
        json!({"QueueUrl": url, "MaxNumberOfMessages": 10}),
    )
    .await;
    assert_eq!(got["Messages"][0]["Body"], "hello");
    let entry = json!([{"Id": "0", "ReceiptHandle": got["Messages"][0]["ReceiptHandle"]}]);
    sqs(
        "DeleteMessageBatch",
        json!({"QueueUrl": url, "Entries": entry}),
    )
    .await;
}

#[tokio::test]
async fn refreshes_are_listed_for_groups_that_exist() {
    let proxy = field("fresh", from(json!({"refreshes": [
        {"group": "fresh", "id": "r-2", "status": "InProgress", "percent": 40},
        {"group": "fresh", "id": "r-1", "status": "Successful", "percent": 100, "started_ms_ago": 100000}]})))
    .await;
    let list = async |name| {
        let form = [("AutoScalingGroupName", name)];
        proxy
            .call(
                EAST,
                Service::AutoScaling,
                "DescribeInstanceRefreshes",
                &form,
            )
            .await
    };
    assert_eq!(
        texts(&list("fresh").await.expect("answers"), "Status"),
        ["InProgress", "Successful"]
    );
    list("fresh-none").await.expect_err("no such group");
}
