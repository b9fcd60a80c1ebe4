//! Offers, queues and hooks.

use std::time::{Duration, Instant};

use drover_aws::{AwsEvents, AwsOffers, FailureKind, HookAnswer, ReservationId, ReservationKind};

use super::{here, reply, set_up};

fn types(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[tokio::test]
async fn the_present_spot_price_of_each_zone() {
    let (server, aws) = set_up().await;
    let row = |zone: &str, price: &str, at: &str| {
        format!(
            "<item><instanceType>p4d.24xlarge</instanceType><productDescription>Linux/UNIX</productDescription>\
            <spotPrice>{price}</spotPrice><timestamp>{at}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
        )
    };
    let page = |rows: &[String], next: &str| {
        format!(
            "<DescribeSpotPriceHistoryResponse><spotPriceHistorySet>{}</spotPriceHistorySet><nextToken>{next}</nextToken></DescribeSpotPriceHistoryResponse>",
            rows.concat()
        )
    };
    let first = [
        row("us-east-1a", "9.830500", "2026-11-30T07:00:00Z"),
        row("us-east-1b", "11.57", "2026-11-30T06:00:00Z"),
    ];
    let second = [row("us-east-1a", "9.1", "2026-11-29T07:00:00Z")];
    server
        .says("DescribeSpotPriceHistory", 200, &page(&first, "t2"))
        // An empty token is no token.
        .says("DescribeSpotPriceHistory", 200, &page(&second, ""));
    let prices = aws
        .spot_prices(&here(), &types(&["p4d.24xlarge"]))
        .await
        .expect("reads");
    let seen: Vec<_> = prices
        .iter()
        .map(|p| (p.zone.as_str(), p.micro_usd_per_hour))
        .collect();
    assert_eq!(
        seen,
        [("us-east-1a", 9_830_500), ("us-east-1b", 11_570_000)]
    );
    assert_eq!(server.asked("DescribeSpotPriceHistory").len(), 2);
}

#[tokio::test]
async fn reservations_blocks_and_an_id_that_aws_does_not_know() {
    let (server, aws) = set_up().await;
    let row = |id: &str, more: &str| {
        format!(
            "<item><capacityReservationId>{id}</capacityReservationId><instanceType>p5.48xlarge</instanceType>\
            <availabilityZone>us-east-1a</availabilityZone><totalInstanceCount>4</totalInstanceCount>\
            <availableInstanceCount>1</availableInstanceCount><state>active</state>{more}</item>"
        )
    };
    let all = format!(
        "<DescribeCapacityReservationsResponse><capacityReservationSet>{}{}</capacityReservationSet></DescribeCapacityReservationsResponse>",
        row(
            "cr-1",
            "<instanceMatchCriteria>open</instanceMatchCriteria>"
        ),
        row(
            "cr-2",
            "<instanceMatchCriteria>targeted</instanceMatchCriteria><reservationType>capacity-block</reservationType>\
            <startDate>2026-11-30T11:30:00Z</startDate><endDate>2026-12-07T11:30:00Z</endDate>"
        ),
    );
    server
        .refuses(
            "DescribeCapacityReservations",
            400,
            "InvalidCapacityReservationId.NotFound",
            "The capacity reservation 'cr-9' does not exist",
        )
        .says("DescribeCapacityReservations", 200, &all);
    let wanted = [ReservationId::from("cr-2"), ReservationId::from("cr-9")];
    let found = aws.reservations(&here(), &wanted).await.expect("reads");
    assert_eq!(found.len(), 1, "an unknown id is absent");
    let block = &found[0];
    assert_eq!(block.kind, ReservationKind::CapacityBlock);
    assert_eq!(
        (block.total, block.available, block.targeted, block.active),
        (4, 1, true, true)
    );
    assert_eq!(block.end_unix_ms, Some(1_796_643_000_000));
    let found = aws.reservations(&here(), &[]).await.expect("reads");
    assert_eq!(found.len(), 2);
    assert_eq!(
        (&found[0].kind, found[0].end_unix_ms),
        (&ReservationKind::OnDemand, None)
    );
    let asked = server.asked("DescribeCapacityReservations");
    assert!(asked[0].body.contains("cr-9") && !asked[0].body.contains("MaxResults"));
    assert!(
        asked[2].body.contains("Filter.1.Name=state"),
        "{}",
        asked[2].body
    );
}

#[tokio::test]
async fn messages_come_and_are_deleted_in_part() {
    let (server, aws) = set_up().await;
    let messages = r#"{"Messages":[{"MessageId":"m1","ReceiptHandle":"r1","Body":"{\"a\":1}","MD5OfBody":"0"},
        {"MessageId":"m2","ReceiptHandle":"r2","Body":"x","MD5OfBody":"0"}]}"#;
    let partly = r#"{"Successful":[{"Id":"0"}],"Failed":[{"Id":"1","SenderFault":true,"Code":"ReceiptHandleIsInvalid","Message":"The receipt handle has expired"}]}"#;
    server
        .says("ReceiveMessage", 200, "{}")
        .says("ReceiveMessage", 200, messages)
        .says("DeleteMessageBatch", 200, partly)
        .says(
            "DeleteMessageBatch",
            200,
            r#"{"Successful":[{"Id":"0"}],"Failed":[]}"#,
        );
    let queue = format!("{}/123456789012/notices", server.url());
    assert_eq!(aws.receive(&here(), &queue, 0).await.expect("asks"), []);
    let found = aws.receive(&here(), &queue, 20).await.expect("asks");
    let seen: Vec<_> = found
        .iter()
        .map(|m| (m.id.as_str(), m.receipt.as_str(), m.body.as_str()))
        .collect();
    assert_eq!(seen, [("m1", "r1", r#"{"a":1}"#), ("m2", "r2", "x")]);
    assert!(
        server.asked("ReceiveMessage")[1]
            .body
            .contains(r#""WaitTimeSeconds":20"#)
    );
    let receipts = types(&["r1", "r2"]);
    let failed = aws
        .delete(&here(), &queue, &receipts)
        .await
        .expect_err("one is left");
    assert_eq!(failed.kind, FailureKind::Gone);
    assert!(
        failed.message.contains("1 of 2") && failed.message.contains("has expired"),
        "{failed}"
    );
    aws.delete(&here(), &queue, &receipts[..1])
        .await
        .expect("deletes");
    aws.delete(&here(), &queue, &[])
        .await
        .expect("nothing is nothing");
    assert_eq!(server.asked("DeleteMessageBatch").len(), 2);
    let many = vec!["r".to_owned(); 11];
    let refused = aws
        .delete(&here(), &queue, &many)
        .await
        .expect_err("too many");
    assert_eq!(refused.kind, FailureKind::Config);
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_a_fault_of_the_config() {
    let (server, aws) = set_up().await;
    server.says(
        "ReceiveMessage",
        400,
        r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}"#,
    );
    let queue = format!("{}/1/none", server.url());
    let failed = aws
        .receive(&here(), &queue, 0)
        .await
        .expect_err("is not there");
    assert_eq!(failed.kind, FailureKind::Config, "{failed}");
    assert_eq!(
        server.asked("ReceiveMessage").len(),
        1,
        "asking again helps nothing"
    );
}

#[tokio::test]
async fn hooks_are_answered_once() {
    let (server, aws) = set_up().await;
    let over = "No active Lifecycle Action found with instance ID i-1";
    server
        .says(
            "CompleteLifecycleAction",
            200,
            &reply("CompleteLifecycleAction", ""),
        )
        .says("CompleteLifecycleAction", 500, "<html>")
        .refuses(
            "RecordLifecycleActionHeartbeat",
            400,
            "ValidationError",
            over,
        );
    let (group, instance) = ("g".into(), "i-1".into());
    aws.complete(&here(), &group, "drain", &instance, HookAnswer::Continue)
        .await
        .expect("goes on");
    let began = Instant::now();
    let unknown = aws
        .complete(&here(), &group, "drain", &instance, HookAnswer::Abandon)
        .await
        .expect_err("no answer of AWS's");
    assert!(unknown.may_have_applied);
    assert!(began.elapsed() < Duration::from_secs(10));
    let asked = server.asked("CompleteLifecycleAction");
    assert_eq!(asked.len(), 2, "sent once each");
    assert!(asked[0].body.contains("LifecycleActionResult=CONTINUE"));
    assert!(asked[1].body.contains("LifecycleActionResult=ABANDON"));
    let gone = aws
        .heartbeat(&here(), &group, "drain", &instance)
        .await
        .expect_err("the hook is over");
    assert_eq!(
        (gone.kind, gone.may_have_applied),
        (FailureKind::Gone, false),
        "{gone}"
    );
}
