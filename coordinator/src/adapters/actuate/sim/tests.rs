//! Tests of the adapter against the cloud in this process.

use super::*;
use crate::config as settings;
use crate::ports::actuate::InstanceState;
use crate::world::WorldSpec;

fn cloud() -> SimCloud {
    let world: WorldSpec = toml::from_str(
        "[[group]]\nname = \"g\"\nregion = \"west\"\nmax = 10\n[[group.offering]]\ninstance_type = \"p2\"\n\
         zone = \"west-a\"\nprice_micro_usd_per_hour = 5\ngpus = 16\ngpu_model = \"k80\"\ncpus = 64\n\
         memory_gib = 732\nboot_ms = 0\ncapacity = 2\n",
    )
    .expect("a sound world");
    let text = "[[pool]]\nname = \"p\"\nkind = \"sim\"\nsite = \"west\"\ngroup = \"g\"\nmax = 10\n\
                [sim]\ncloud = \"http://127.0.0.1:7900\"\n";
    let pools = settings::parse(text).expect("a sound config").pools;
    SimCloud::embedded(Engine::new(world, 7, None), &pools)
}

fn order(token: &str, count: u32) -> LaunchOrder {
    LaunchOrder {
        id: "l-1".into(),
        token: token.into(),
        pool: "p".into(),
        offering: "p/p2/west-a/on-demand".into(),
        count,
        asked: UnixMs(1_000),
        hosts: Vec::new(),
    }
}

#[tokio::test]
async fn asks_once_names_the_shortage_and_leaves_by_id() {
    let cloud = cloud();
    let first = cloud.launch(&order("t", 3)).await.expect("asked");
    assert_eq!((first.granted, first.failures.len()), (2, 1));
    assert_eq!(first.failures[0].kind, FailureKind::Shortage);
    assert_eq!(
        cloud.launch(&order("t", 3)).await.expect("asked again"),
        first
    );
    cloud
        .leave(&"p".into(), &first.instances[0])
        .await
        .expect("it is there");
    cloud
        .leave(&"p".into(), &first.instances[0])
        .await
        .expect("gone already is well");
    let read = cloud.read(&["p".into()]).await;
    let reading = read[0].1.as_ref().expect("the group is there");
    let gone = reading
        .instances
        .iter()
        .filter(|i| i.state == InstanceState::Gone)
        .count();
    assert_eq!((reading.instances.len(), gone), (2, 1));
    assert_eq!(reading.offerings[0].id, order("t", 1).offering);
}

#[tokio::test]
async fn an_old_intent_is_settled_by_looking() {
    let cloud = cloud();
    let late = UnixMs(1_000 + ASK_AGAIN.0);
    assert_eq!(
        cloud
            .settle(&order("never", 1), &[], late)
            .await
            .expect("looked")
            .granted,
        0
    );
    let asked = cloud.launch(&order("t", 1)).await.expect("asked");
    assert_eq!(
        cloud
            .settle(&order("t", 1), &[], late)
            .await
            .expect("looked")
            .instances,
        asked.instances
    );
    assert_eq!(
        cloud
            .settle(&order("u", 1), &[], UnixMs(2_000))
            .await
            .expect("asked")
            .granted,
        1
    );
}
