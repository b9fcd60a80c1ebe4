//! Tests of join tokens: what is made, what is refused, and what a use is.

use super::*;

const NOW: UnixMs = UnixMs(1_000_000);

fn ca() -> String {
    "ab".repeat(32)
}

#[test]
fn one_token_and_everything_that_may_be_wrong_with_a_use() {
    let wish = TokenWish {
        host: Some("titan-01".into()),
        max_uses: 2,
        ..TokenWish::default()
    };
    let (fresh, text) = mint(wish, &ca(), "admin/ada", NOW).unwrap();
    assert_eq!(fresh.expires, NOW.after(DEFAULT_TTL));
    let secret = text.split('.').nth(2).unwrap();
    assert!(!serde_json::to_string(&fresh).unwrap().contains(secret));

    let node = NodeId::from("n-1");
    let used = TokenRecord {
        uses: vec![("key-1".into(), node.clone())],
        ..fresh.clone()
    };
    let full = TokenRecord {
        uses: vec![
            ("key-1".into(), node.clone()),
            ("key-2".into(), NodeId::from("n-2")),
        ],
        ..fresh.clone()
    };
    let revoked = TokenRecord {
        revoked: true,
        ..used.clone()
    };
    let other = mint(TokenWish::default(), &ca(), "admin/ada", NOW)
        .unwrap()
        .0;
    let end = NOW.after(DEFAULT_TTL);
    let late = UnixMs(end.0 - 1);
    let host = TokenError::OtherHost {
        wanted: "titan-01".into(),
        is: "titan-02".into(),
    };
    let presented = Presented::parse(&format!(" {text}\n"), &ca()).unwrap();
    assert_eq!(presented.id, fresh.id);
    for (what, record, key, from, now, expect) in [
        (
            "fresh",
            Some(&fresh),
            "key-1",
            "titan-01",
            NOW,
            Ok(Use::First),
        ),
        (
            "last moment",
            Some(&fresh),
            "key-1",
            "TITAN-01",
            late,
            Ok(Use::First),
        ),
        (
            "second key",
            Some(&used),
            "key-2",
            "titan-01",
            NOW,
            Ok(Use::First),
        ),
        (
            "repeated",
            Some(&used),
            "key-1",
            "titan-01",
            NOW,
            Ok(Use::Again(node.clone())),
        ),
        (
            "full, repeated",
            Some(&full),
            "key-1",
            "titan-01",
            NOW,
            Ok(Use::Again(node)),
        ),
        (
            "full",
            Some(&full),
            "key-3",
            "titan-01",
            NOW,
            Err(TokenError::Exhausted(2)),
        ),
        (
            "expired",
            Some(&used),
            "key-1",
            "titan-01",
            end,
            Err(TokenError::Expired),
        ),
        (
            "revoked",
            Some(&revoked),
            "key-1",
            "titan-01",
            NOW,
            Err(TokenError::Revoked),
        ),
        (
            "other host",
            Some(&used),
            "key-1",
            "titan-02",
            NOW,
            Err(host),
        ),
        (
            "unknown",
            None,
            "key-1",
            "titan-01",
            NOW,
            Err(TokenError::Unknown),
        ),
        (
            "other secret",
            Some(&other),
            "key-1",
            "titan-01",
            NOW,
            Err(TokenError::Unknown),
        ),
    ] {
        assert_eq!(presented.judge(record, key, from, now), expect, "{what}");
    }
}

#[test]
fn texts_that_are_no_token() {
    let (_, text) = mint(TokenWish::default(), &ca(), "x", NOW).unwrap();
    let wrong = |text: &str| Presented::parse(text, &ca()).err();
    assert_eq!(wrong(&text), None);
    assert_eq!(
        Presented::parse(&text, &"cd".repeat(32)).err(),
        Some(TokenError::OtherCa)
    );
    for bad in [
        "",
        "hello",
        &text[..text.len() - 1],
        &text.replace("drover-join-v1", "drover-join-v2"),
        &format!("{text}.x"),
        &text.replace('.', ".."),
        &format!("drover-join-v1.x/y.00.{}", ca()),
    ] {
        assert_eq!(wrong(bad), Some(TokenError::Malformed), "{bad}");
    }
}

#[test]
fn wishes_have_limits() {
    let make = |wish| mint(wish, &ca(), "x", NOW).map(|_| ());
    let wish = TokenWish::default;
    for (bad, expect) in [
        (
            TokenWish {
                max_uses: 2_001,
                ..wish()
            },
            WishError::Uses(2_001),
        ),
        (
            TokenWish {
                ttl: Millis(u64::MAX),
                ..wish()
            },
            WishError::Ttl,
        ),
        (
            TokenWish {
                host: Some("a b".into()),
                ..wish()
            },
            WishError::Host("a b".into()),
        ),
    ] {
        assert_eq!(make(bad), Err(expect));
    }
    make(TokenWish {
        max_uses: USES_MOST,
        ttl: TTL_MOST,
        host: Some("a".into()),
        ..wish()
    })
    .unwrap();
}

#[test]
fn a_token_with_all_its_uses_fits_into_a_record() {
    let (mut record, _) = mint(
        TokenWish {
            max_uses: USES_MOST,
            ..TokenWish::default()
        },
        &ca(),
        "x",
        NOW,
    )
    .unwrap();
    record.uses = (0..USES_MOST)
        .map(|n| (sha256_hex(&n.to_be_bytes()), NodeId::new("n-0123456789ab")))
        .collect();
    let bytes = serde_json::to_vec(&record).unwrap().len();
    assert!(bytes < crate::ports::store::VALUE_BYTES, "{bytes}");
}
