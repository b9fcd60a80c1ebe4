//! Tests of the book: what is told, and that it is told once.

use super::*;

const NOW: u64 = 1_772_359_200_000;
/// 2026-03-01T10:02:00Z
const END: u64 = NOW + 120_000;

/// Rounds of one document each, in order; kinds of what was told after each.
fn play(kind: Kind, rounds: &[&str]) -> Vec<Vec<String>> {
    let mut book = Book::default();
    let mut documents = BTreeMap::new();
    let mut now = NOW;
    rounds
        .iter()
        .map(|text| {
            documents.insert(kind, (*text).to_owned());
            now += 5_000;
            // As after a restart: what was told goes through the disk.
            let text = serde_json::to_string(&book).unwrap();
            book = serde_json::from_str(&text).unwrap();
            let told = book.judge("i-1", &documents, now).notices;
            told.into_iter().map(|notice| notice.id).collect()
        })
        .collect()
}

fn count(kind: Kind, rounds: &[&str]) -> Vec<usize> {
    play(kind, rounds).iter().map(Vec::len).collect()
}

#[test]
fn ag_20_a_spot_notice_is_told_once_with_its_time() {
    let mut book = Book::default();
    let text = r#"{"action":"terminate","time":"2026-03-01T10:02:00Z"}"#;
    let documents = BTreeMap::from([(Kind::Spot, text.to_owned())]);
    let told = book.judge("i-1", &documents, NOW);
    assert_eq!(
        told.notices,
        [Notice {
            id: "spot_interruption/i-1/2026-03-01T10:02:00Z".to_owned(),
            kind: "spot_interruption".to_owned(),
            at_unix_ms: NOW,
            deadline_unix_ms: Some(END),
            subject: "i-1".to_owned(),
            message: "the spot market will terminate i-1 at 2026-03-01T10:02:00Z".to_owned(),
            withdrawn: false,
        }]
    );
    let spot = told.spot.expect("it holds");
    assert_eq!(spot.at_unix_ms, END);
    let again = book.judge("i-1", &documents, NOW + 5_000);
    assert!(again.notices.is_empty());
    assert_eq!(again.spot, Some(spot), "it holds all the same");
    // Half of it, then the whole.
    let half = r#"{"action":"termi"#;
    assert_eq!(count(Kind::Spot, &[half, text, text, half]), [0, 1, 0, 0]);
}

#[test]
fn ag_21_terminated_five_times_is_one_notice_and_a_warm_pool_none() {
    let told = play(
        Kind::Lifecycle,
        &[
            "InService",
            "Terminated",
            "Terminated",
            "Terminated",
            "Terminated",
            "Terminated",
        ],
    );
    let ids: Vec<String> = told.into_iter().flatten().collect();
    assert_eq!(ids, ["lifecycle_terminating/i-1/Terminated"]);
    let warm = ["", "Warmed:Running", "Warmed:Stopped", "Warmed:Terminated"];
    assert_eq!(count(Kind::Lifecycle, &warm), [0, 0, 0, 0]);
}

#[test]
fn a_new_recommendation_is_news_and_the_same_is_not() {
    let at = |minute: u8| format!(r#"{{"noticeTime":"2026-03-01T10:0{minute}:00Z"}}"#);
    let (one, two) = (at(1), at(2));
    assert_eq!(
        count(Kind::Rebalance, &[&one, &one, "", &one, &two]),
        [1, 0, 0, 0, 1]
    );
}

#[test]
fn maintenance_can_move_and_be_taken_back() {
    let event = |state: &str, day: u8| {
        format!(
            r#"[{{"NotBefore":"{day} Mar 2026 10:00:00 GMT","Code":"instance-retirement","EventId":"e-1","State":"{state}"}}]"#
        )
    };
    let rounds = [
        event("active", 20),
        event("active", 20),
        event("active", 21),
        event("canceled", 21),
        event("canceled", 21),
        "[]".to_owned(),
    ];
    let rounds: Vec<&str> = rounds.iter().map(String::as_str).collect();
    assert_eq!(
        play(Kind::Scheduled, &rounds),
        [
            vec!["scheduled_event/i-1/e-1/2026-03-20T10:00:00Z"],
            vec![],
            vec!["scheduled_event/i-1/e-1/2026-03-21T10:00:00Z"],
            vec!["scheduled_event/i-1/e-1/canceled"],
            vec![],
            vec![],
        ]
    );
    // What was over before the agent came is no news.
    assert_eq!(count(Kind::Scheduled, &[&event("completed", 20)]), [0]);
    let mut book = Book::default();
    let mut documents = BTreeMap::from([(Kind::Scheduled, event("active", 20))]);
    let told = book.judge("i-1", &documents, NOW).notices;
    assert_eq!(
        (told[0].subject.as_str(), told[0].withdrawn),
        ("e-1", false)
    );
    assert_eq!(told[0].deadline_unix_ms, Some(1_774_000_800_000));
    documents.insert(Kind::Scheduled, event("canceled", 20));
    let back = book.judge("i-1", &documents, NOW).notices;
    assert_eq!((back[0].deadline_unix_ms, back[0].withdrawn), (None, true));
}

#[test]
fn the_book_is_bounded_and_keeps_what_holds() {
    let mut book = Book::default();
    let spot = r#"{"action":"stop","time":"2026-03-01T10:02:00Z"}"#.to_owned();
    let mut documents = BTreeMap::from([(Kind::Spot, spot)]);
    assert_eq!(book.judge("i-1", &documents, NOW).notices.len(), 1);
    for minute in 0..400_u64 {
        let at = clock::text(NOW + minute * 60_000);
        let text = format!(r#"{{"noticeTime":"{at}"}}"#);
        documents.insert(Kind::Rebalance, text);
        assert_eq!(book.judge("i-1", &documents, NOW + minute).notices.len(), 1);
    }
    assert_eq!(book.told.len(), KEPT);
    assert!(book.judge("i-1", &documents, NOW).notices.is_empty());
}
