//! Names of AWS regions, zones, roles and instance types, as far as their form tells whether they can be right.
//!
//! Called by `config` for pools and for discovery. Whether a well-formed region exists only AWS can say: new ones come.

use drover_config::nearest;

/// Regions that exist while this is written, for hints only.
const KNOWN: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-west-1",
    "us-west-2",
];
/// What a region's name begins with.
const AREAS: &[&str] = &[
    "af", "ap", "ca", "cn", "eu", "eu-isoe", "eusc-de", "il", "me", "mx", "sa", "us", "us-gov",
    "us-iso", "us-isob", "us-isof",
];
/// What stands before its number.
const DIRECTIONS: &[&str] = &[
    "central",
    "east",
    "north",
    "northeast",
    "northwest",
    "south",
    "southeast",
    "southwest",
    "west",
];

fn well_formed(text: &str) -> bool {
    let mut parts = text.rsplitn(3, '-');
    let (number, direction, area) = (parts.next(), parts.next(), parts.next());
    number.is_some_and(|n| {
        (1..=2).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()) && !n.starts_with('0')
    }) && direction.is_some_and(|d| DIRECTIONS.contains(&d))
        && area.is_some_and(|a| AREAS.contains(&a))
}

/// A region's name.
///
/// # Errors
/// What is wrong with it, and which one may be meant.
pub(super) fn region(text: &str) -> Result<String, String> {
    if well_formed(text) {
        return Ok(text.to_owned());
    }
    let without = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    if without.len() < text.len() && well_formed(without) {
        return Err(format!(
            "{text:?} is a zone and no region: did you mean {without:?}?"
        ));
    }
    let hint = nearest(&text.to_lowercase(), KNOWN)
        .map_or_else(String::new, |known| format!(": did you mean {known:?}?"));
    Err(format!("{text:?} is no region of AWS{hint}"))
}

/// What to write for a region that is none: the one that may be meant, else no guess.
pub(super) fn advice(text: &str) -> String {
    let without = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let zone = Some(without).filter(|zone| well_formed(zone));
    match zone.or_else(|| nearest(&text.to_lowercase(), KNOWN)) {
        Some(meant) => format!("write \"{meant}\""),
        None => "write a region's name: `aws ec2 describe-regions --all-regions --query 'Regions[].RegionName'` lists them"
            .to_owned(),
    }
}

/// A zone of a region.
///
/// # Errors
/// It lies elsewhere.
pub(super) fn zone(text: &str, region: &str) -> Result<(), String> {
    match text.strip_prefix(region) {
        Some(rest) if !rest.is_empty() => Ok(()),
        _ => Err(format!("{text:?} is no zone of {region}")),
    }
}

/// An ARN of a role.
///
/// # Errors
/// It is none.
pub(super) fn role_arn(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", partition, "iam", "", account, role]
            if partition.starts_with("aws")
                && account.len() == 12
                && account.bytes().all(|b| b.is_ascii_digit())
                && role.strip_prefix("role/").is_some_and(|r| !r.is_empty()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!("{text:?} is no ARN of a role")),
    }
}

/// An instance type, `FAMILY.SIZE`.
///
/// # Errors
/// It is none.
pub(super) fn instance_type(text: &str) -> Result<(), String> {
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    match text.split_once('.') {
        Some((family, size)) if plain(family) && plain(size) => Ok(()),
        _ => Err(format!("{text:?} is no instance type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_regions_are_well_formed_and_strangers_are_told_apart() {
        for known in KNOWN {
            assert_eq!(region(known), Ok((*known).to_owned()));
        }
        // A region that opens tomorrow is none of our business.
        assert!(region("us-south-1").is_ok() && region("us-iso-east-1").is_ok());
        for (text, says) in [
            ("us-east1", "did you mean \"us-east-1\"?"),
            ("US-EAST-1", "did you mean \"us-east-1\"?"),
            (
                "us-east-1a",
                "is a zone and no region: did you mean \"us-east-1\"?",
            ),
            ("us-weast-2", "did you mean \"us-east-2\"?"),
            ("frankfurt", "is no region of AWS"),
            ("us-east-", "is no region"),
            ("us-east-01", "is no region"),
            ("", "is no region"),
        ] {
            let why = region(text).expect_err(text);
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn the_advice_for_a_region_guesses_only_what_is_near() {
        for (text, says) in [
            ("eu-nort-1", "write \"eu-north-1\""),
            ("us-east-1a", "write \"us-east-1\""),
            ("frankfurt", "describe-regions"),
        ] {
            let told = advice(text);
            assert!(told.contains(says), "{text}: {told}");
            assert!(!told.contains("us-west-2"), "{text}: {told}");
        }
    }

    #[test]
    fn zones_roles_and_types_have_their_form() {
        assert!(zone("us-east-1a", "us-east-1").is_ok());
        assert!(zone("us-east-1-bos-1a", "us-east-1").is_ok());
        assert!(zone("us-east-1", "us-east-1").is_err());
        assert!(zone("us-west-2a", "us-east-1").is_err());
        let role = "arn:aws:iam::123456789012:role/team/drover";
        assert_eq!(role_arn(role), Ok(role.to_owned()));
        assert!(role_arn("arn:aws-us-gov:iam::123456789012:role/drover").is_ok());
        for bad in [
            "drover",
            "arn:aws:iam::1234:role/drover",
            "arn:aws:iam::123456789012:user/drover",
            "arn:aws:iam::123456789012:role/",
        ] {
            assert!(role_arn(bad).is_err(), "{bad}");
        }
        assert!(instance_type("u-6tb1.metal").is_ok() && instance_type("g5.xlarge").is_ok());
        assert!(instance_type("g5").is_err() && instance_type("G5.xlarge").is_err());
    }
}
