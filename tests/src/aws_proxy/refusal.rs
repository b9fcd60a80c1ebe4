//! AWS's codes and words for launches that fail.
//!
//! Used by everything that launches. The words are AWS's, as its documentation and users' reports have them.

use super::scenario::{Ration, Why};

/// A refused launch.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) words: String,
    /// The StatusMessage of the activity that tells of it.
    pub(super) activity: String,
}

/// What a row says of a launch of this type in this zone.
pub(super) fn refusal(row: &Ration, instance_type: &str, zone: &str, spot: bool) -> Refusal {
    let (code, words) = row.why.map_or_else(
        || {
            (
                "InsufficientInstanceCapacity",
                shortage(instance_type, zone),
            )
        },
        |why| spelled(why, instance_type, zone),
    );
    let code = row.code.clone().unwrap_or_else(|| code.to_owned());
    let words = row.message.clone().unwrap_or(words);
    let market = if spot { "Spot" } else { "On-Demand" };
    // With a code of its own AWS writes `Could not launch ... Instances. CODE - words`.
    let coded = row.code.is_some() || row.why.is_some_and(Why::is_coded);
    let activity = if row.why == Some(Why::Kms) {
        words.clone()
    } else if coded {
        format!(
            "Could not launch {market} Instances. {code} - {words} Launching EC2 instance failed."
        )
    } else {
        format!("{words} Launching EC2 instance failed.")
    };
    Refusal {
        code,
        words,
        activity,
    }
}

fn shortage(instance_type: &str, zone: &str) -> String {
    format!(
        "We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone}). \
         Our system will be working on provisioning additional capacity. You can currently get {instance_type} \
         capacity by not specifying an Availability Zone in your request or choosing another one."
    )
}

fn spelled(why: Why, instance_type: &str, zone: &str) -> (&'static str, String) {
    match why {
        Why::Shortage => ("InsufficientInstanceCapacity", shortage(instance_type, zone)),
        Why::Unfulfillable => (
            "UnfulfillableCapacity",
            "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
                .to_owned(),
        ),
        Why::Unsupported => (
            "Unsupported",
            format!(
                "Your requested instance type ({instance_type}) is not supported in your requested Availability Zone \
                 ({zone}). Please retry your request by not specifying an Availability Zone or choosing another one."
            ),
        ),
        Why::Reservation => (
            "ReservationCapacityExceeded",
            "The requested reservation does not have sufficient compatible and available capacity for this request."
                .to_owned(),
        ),
        Why::Vcpus => (
            "VcpuLimitExceeded",
            "You have requested more vCPU capacity than your current vCPU limit of 96 allows for the instance bucket \
             that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to \
             request an adjustment to this limit."
                .to_owned(),
        ),
        Why::SpotCount => (
            "MaxSpotInstanceCountExceeded",
            "Max spot instance count exceeded".to_owned(),
        ),
        Why::Addresses => (
            "InsufficientFreeAddressesInSubnet",
            "There are not enough free addresses in the subnet to satisfy the requested number of instances.".to_owned(),
        ),
        Why::Volumes => (
            "VolumeLimitExceeded",
            "You have exceeded your maximum gp3 storage limit of 50 TiB in this region. Please contact AWS Support to \
             request an Elastic Block Store service limit increase."
                .to_owned(),
        ),
        Why::SpotPrice => (
            "SpotMaxPriceTooLow",
            "Your Spot request price of 0.001 is lower than the minimum required Spot request fulfillment price of 0.012."
                .to_owned(),
        ),
        Why::Image => (
            "InvalidAMIID.NotFound",
            "The image id '[ami-0123456789abcdef0]' does not exist".to_owned(),
        ),
        Why::Template => (
            "InvalidParameterValue",
            "You must use a valid fully-formed launch template. The parameter groupName cannot be used with the \
             parameter subnet"
                .to_owned(),
        ),
        Why::Kms => (
            "Client.InternalError",
            "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: \
             Client.InternalError: Client error on launch"
                .to_owned(),
        ),
        Why::Permission => (
            "UnauthorizedOperation",
            "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/\
             AWSServiceRoleForAutoScaling/AutoScaling is not authorized to perform: ec2:RunInstances."
                .to_owned(),
        ),
        Why::Throttle => ("RequestLimitExceeded", "Request limit exceeded.".to_owned()),
        Why::Internal => (
            "InternalError",
            "An internal error has occurred".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_its_own_is_told_in_the_activity() {
        let row = |why, code: Option<&str>| Ration {
            why,
            code: code.map(str::to_owned),
            ..Ration::default()
        };
        let told = |row: &Ration, spot| refusal(row, "p4d.24xlarge", "us-east-1a", spot).activity;
        assert!(
            told(&row(None, None), false).starts_with("We currently do not have sufficient p4d")
        );
        let text = told(&row(Some(Why::SpotPrice), None), true);
        assert!(
            text.starts_with("Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot"),
            "{text}"
        );
        assert!(
            told(&row(Some(Why::Vcpus), None), false).starts_with("You have requested more vCPU")
        );
        let text = told(&row(None, Some("UnfulfillableCapacity")), false);
        assert!(
            text.starts_with("Could not launch On-Demand Instances. UnfulfillableCapacity"),
            "{text}"
        );
    }
}
