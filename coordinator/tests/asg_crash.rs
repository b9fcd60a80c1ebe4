//! A coordinator that dies between asking and recording, in both ways of growing: exactly what was needed is launched.
//!
//! The crash is a fail point that takes the answer away for good; what comes after it is a new process with nothing
//! but the intent. New instances are in no describe meanwhile.

use asg_field::{Field, order};
use drover::ports::actuate::{Actuator, OUTCOME_UNKNOWN, Way};
use drover_tests::aws_proxy::{Effect, Fault, Scenario, Timing};
use drover_tests::moto::NewGroup;
use fail::FailScenario;

#[path = "asg/field.rs"]
mod asg_field;

const REGION: &str = "us-east-1";

/// Instances that nobody sees.
fn hidden() -> Scenario {
    Scenario {
        timing: vec![Timing {
            hide_ms: 600_000,
            ..Timing::default()
        }],
        ..Scenario::default()
    }
}

fn without_launch_instances() -> Scenario {
    let effect = Effect::Error {
        status: 403,
        code: "AccessDenied".into(),
        message: "not authorized".into(),
    };
    let fault = Fault {
        action: Some("LaunchInstances".into()),
        effect,
        ..Fault::default()
    };
    Scenario {
        faults: vec![fault],
        ..hidden()
    }
}

/// One test, since fail points are the process's.
#[tokio::test]
async fn sc_30_a_crash_between_asked_and_recorded_asks_nothing_twice() {
    let launch = ("asg-launch-asked", hidden(), Way::LaunchInstances);
    let noted = (
        "asg-desired-noted",
        without_launch_instances(),
        Way::SetDesiredCapacity,
    );
    let desired = (
        "asg-desired-asked",
        without_launch_instances(),
        Way::SetDesiredCapacity,
    );
    let repeat = |name, (point, scenario, way), settles| (name, point, scenario, way, settles);
    let table = [
        repeat("c1-launch", launch.clone(), true),
        repeat("c2-launch", launch, false),
        repeat("c3-noted", noted.clone(), true),
        repeat("c4-noted", noted, false),
        repeat("c5-desired", desired.clone(), true),
        repeat("c6-desired", desired, false),
    ];
    for (name, point, scenario, way, settles) in table {
        let group = NewGroup::new(name, "g5.xlarge", &["us-east-1a"]);
        let field = Field::new(&[(REGION, group)], scenario).await;
        let intent = order(name, "us-east-1a", "t1", 3);
        let second = order(name, "us-east-1a", "t2", 1);

        let crash = FailScenario::setup();
        fail::cfg(point, "return").expect("a fail point");
        let died = field
            .adapter()
            .await
            .launch(&intent)
            .await
            .expect_err(point);
        assert_eq!(died.code, OUTCOME_UNKNOWN, "{point}: {died}");
        crash.teardown();

        // The restart: the intent is settled or the same order is given again; then one more unit is demanded.
        let anew = field.adapter().await;
        assert!(
            field.read(&anew).await[0].instances.is_empty(),
            "{point}: nothing shows yet"
        );
        let again = async |order| {
            let anew = field.adapter().await;
            let outcome = if settles {
                anew.settle(order, &[], field.now()).await
            } else {
                anew.launch(order).await
            };
            outcome.unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let settled = again(&intent).await;
        assert_eq!((settled.way, settled.granted), (way, 3), "{name}");
        let more = anew
            .launch(&second)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((more.way, more.granted), (way, 1), "{name}");
        // Once more, as after a second crash before the record: nothing changes.
        assert_eq!(again(&second).await.granted, 1, "{name}");

        let ledger = field.proxy.ledger();
        assert_eq!(
            ledger.launched(REGION, name),
            4,
            "{name}: {:?}",
            ledger.mutations
        );
        assert!(ledger.ends.is_empty(), "{name}");
    }
}
