//! Warm pools with instances.

use super::*;

async fn warm(proxy: &AwsProxy, group: &str) -> (Vec<String>, Vec<String>) {
    let text = proxy
        .asg("DescribeWarmPool", &[("AutoScalingGroupName", group)])
        .await
        .expect("answers");
    (texts(&text, "InstanceId"), texts(&text, "LifecycleState"))
}

#[tokio::test]
async fn a_stopped_pool_is_taken_from_and_refilled() {
    let mut group = NewGroup::new("warm", "g5.xlarge", &["us-east-1a"]);
    group.max = 4;
    let proxy = field_of(group, Scenario::default()).await;
    let form = [("AutoScalingGroupName", "warm"), ("MinSize", "1")];
    proxy.asg("PutWarmPool", &form).await.expect("is put");
    let (ids, states) = warm(&proxy, "warm").await;
    assert_eq!(states, vec!["Warmed:Stopped"; 4], "maximum less desired");
    assert_eq!(proxy.in_ec2(&ids[0]).await, "stopped");
    let refused = proxy
        .terminate(&ids[0], true)
        .await
        .expect_err("is refused");
    assert!(refused.contains("warm pool"), "{refused}");
    let form = [
        ("AutoScalingGroupName", "warm"),
        ("InstanceIds.member.1", &ids[0]),
        ("ProtectedFromScaleIn", "true"),
    ];
    proxy
        .asg("SetInstanceProtection", &form)
        .await
        .expect_err("is refused");
    proxy.set_desired("warm", 3).await.expect("is taken");
    let members = proxy.members("warm").await;
    assert_eq!(members.len(), 3);
    assert!(
        members.iter().all(|m| ids.contains(&m.0)),
        "they come from the pool"
    );
    assert_eq!(proxy.in_ec2(&members[0].0).await, "running");
    wait::until_async("its minimum", SOON, async || {
        (warm(&proxy, "warm").await.0.len() == 1).then_some(())
    })
    .await;
    proxy.terminate(&members[0].0, true).await.expect("goes");
    wait::until_async("scale-in refills it", SOON, async || {
        (warm(&proxy, "warm").await.0.len() == 2).then_some(())
    })
    .await;
    assert!(
        proxy
            .ledger()
            .launches
            .iter()
            .any(|l| l.way == "warm pool" && l.instances.len() == 3)
    );
    // Stopped ones hold no capacity.
    proxy
        .set(from(json!({"rations": [{"group": "warm", "left": 0}]})))
        .await;
    proxy.set_desired("warm", 4).await.expect("is taken");
    assert_eq!(
        proxy.members("warm").await.len(),
        2,
        "a shortage meets them as well"
    );
    proxy
        .asg("DeleteWarmPool", &[("AutoScalingGroupName", "warm")])
        .await
        .expect_err("has instances");
    let form = [("AutoScalingGroupName", "warm"), ("ForceDelete", "true")];
    proxy.asg("DeleteWarmPool", &form).await.expect("goes");
    proxy.at_peace();
}

#[tokio::test]
async fn a_running_pool_warms_for_a_time() {
    let proxy = field("warm-run", from(json!({"timing": [{"warming_ms": 200}]}))).await;
    let form = [
        ("AutoScalingGroupName", "warm-run"),
        ("MaxGroupPreparedCapacity", "2"),
        ("PoolState", "Running"),
    ];
    proxy.asg("PutWarmPool", &form).await.expect("is put");
    let (_, states) = warm(&proxy, "warm-run").await;
    assert_eq!(states.len(), 2);
    wait::until_async("they are warm", SOON, async || {
        let (_, states) = warm(&proxy, "warm-run").await;
        (states == ["Warmed:Running", "Warmed:Running"]).then_some(())
    })
    .await;
    proxy.at_peace();
}
