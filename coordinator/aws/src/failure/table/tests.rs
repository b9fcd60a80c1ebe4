//! Tables over codes and texts as AWS spells them.

use super::*;

#[test]
fn sc_72_codes_and_texts() {
    let shortage_text = "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you requested \
        (us-east-1d). Our system will be working on provisioning additional capacity. You can currently get p4d.24xlarge \
        capacity by not specifying an Availability Zone in your request or choosing us-east-1a, us-east-1b. Launching EC2 \
        instance failed.";
    let table: &[(Option<&str>, &str, FailureKind)] = &[
        (Some("VcpuLimitExceeded"), "", Quota),
        (
            None,
            "You have requested more vCPU capacity than your current vCPU limit of 96 allows for the instance bucket",
            Quota,
        ),
        (
            None,
            "You have requested more instances (12) than your current instance limit of 10 allows",
            Quota,
        ),
        (Some("UnfulfillableCapacity"), "", Shortage),
        (
            None,
            "Insufficient capacity. Launching EC2 instance failed.",
            Shortage,
        ),
        (None, shortage_text, Shortage),
        (
            None,
            "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2 instance failed.",
            Quota,
        ),
        (None, "Max spot instance count exceeded", Quota),
        (
            None,
            "Client.VolumeLimitExceeded: Volume limit exceeded. Launching EC2 instance failed.",
            Quota,
        ),
        (
            Some("Client.VolumeLimitExceeded"),
            "Volume limit exceeded",
            Quota,
        ),
        (
            None,
            "You must use a valid fully-formed launch template. The requested instance type is not there.",
            Config,
        ),
        (
            None,
            "The specified launch template, with template ID lt-0abc, does not exist.",
            Config,
        ),
        (Some("InvalidLaunchTemplateId.NotFound"), "", Config),
        (None, "The moon stands in the seventh house.", Transient),
        (
            Some("NeverSeenBefore"),
            "The moon stands in the seventh house.",
            Transient,
        ),
    ];
    for (code, text, kind) in table {
        assert_eq!(classify(*code, text).kind, *kind, "{code:?} {text}");
    }
    assert_eq!(
        classify(None, table[1].1).limit,
        Some(QuotaLimit::Vcpus(96))
    );
    assert_eq!(
        classify(None, table[2].1).limit,
        Some(QuotaLimit::Instances(10))
    );
    let shortage = classify(None, shortage_text);
    assert_eq!(
        shortage.instance_type.as_deref(),
        Some("p4d.24xlarge"),
        "that type"
    );
    assert_eq!(
        shortage.zone.as_deref(),
        Some("us-east-1d"),
        "and that zone only"
    );
    assert!(
        !classify(None, "The moon stands in the seventh house.").known,
        "to be shown to a person"
    );
    assert!(shortage.known);
}

#[test]
fn every_kind_of_the_design_is_recognised() {
    let table: &[(Option<&str>, &str, FailureKind)] = &[
        (Some("InsufficientInstanceCapacity"), "", Shortage),
        (Some("InsufficientHostCapacity"), "", Shortage),
        (Some("InsufficientReservedInstanceCapacity"), "", Shortage),
        (Some("ReservationCapacityExceeded"), "", Shortage),
        (
            None,
            "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches your request. Launching EC2 instance failed.",
            Shortage,
        ),
        (
            Some("Unsupported"),
            "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone (us-east-1e).",
            Unsupported,
        ),
        (Some("InstanceLimitExceeded"), "", Quota),
        (
            Some("InsufficientFreeAddressesInSubnet"),
            "There are not enough free addresses in subnet 'subnet-1'",
            Quota,
        ),
        (Some("SpotMaxPriceTooLow"), "", Price),
        (
            None,
            "Your Spot request price of 0.05 is lower than the minimum required Spot request fulfillment price of 0.07.",
            Price,
        ),
        (
            Some("InvalidAMIID.NotFound"),
            "The image id '[ami-0]' does not exist",
            Config,
        ),
        (
            None,
            "The image id 'ami-0' does not exist. Launching EC2 instance failed.",
            Config,
        ),
        (Some("InvalidParameterValue"), "", Config),
        (Some("InvalidParameterCombination"), "", Config),
        (None, "Client.InternalError: Client error on launch", Config),
        (
            None,
            "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state. Launching EC2 instance failed.",
            Config,
        ),
        (
            Some("ValidationError"),
            "1 validation error detected",
            Config,
        ),
        (
            Some("UnauthorizedOperation"),
            "You are not authorized to perform this operation.",
            Permission,
        ),
        (
            Some("AccessDenied"),
            "User: arn:aws:iam::1:user/x is not authorized to perform: autoscaling:LaunchInstances",
            Permission,
        ),
        (
            Some("ExpiredToken"),
            "The security token included in the request is expired",
            Permission,
        ),
        (
            Some("ValidationError"),
            "Launch process is suspended for group p4",
            Suspended,
        ),
        (
            Some("RequestLimitExceeded"),
            "Request limit exceeded.",
            Throttle,
        ),
        (Some("Throttling"), "Rate exceeded", Throttle),
        (Some("Server.InternalError"), "", Transient),
        (Some("InternalError"), "", Transient),
        (Some("ServiceUnavailable"), "", Transient),
        (
            None,
            "Server.InternalError: Internal error on launch. Launching EC2 instance failed.",
            Transient,
        ),
        (Some("IdempotentCallInProgress"), "", IdempotentInProgress),
        (Some("IdempotentParameterMismatch"), "", TokenMismatch),
        (Some("ResourceContention"), "", Contention),
        (Some("ScalingActivityInProgress"), "", Contention),
        (
            Some("ValidationError"),
            "New SetDesiredCapacity value 50 is above max value 20 for the AutoScalingGroup.",
            GroupLimit,
        ),
        (
            Some("ValidationError"),
            "Currently, desiredSize equals minSize (3). Terminating instance without replacement will violate group's min size constraint.",
            GroupLimit,
        ),
        (
            Some("ValidationError"),
            "Instance Id not found - No managed instance found for instance ID i-1",
            Gone,
        ),
        (
            Some("ValidationError"),
            "AutoScalingGroup name not found - AutoScalingGroup p4 not found",
            Gone,
        ),
        (
            Some("InvalidInstanceID.NotFound"),
            "The instance ID 'i-1' does not exist",
            Gone,
        ),
    ];
    for (code, text, kind) in table {
        let class = classify(*code, text);
        assert_eq!(class.kind, *kind, "{code:?} {text}");
        assert!(class.known, "{code:?} {text}");
    }
}

#[test]
fn a_shortage_without_a_place_closes_no_place() {
    let class = classify(
        Some("InsufficientInstanceCapacity"),
        "There is no Spot capacity available that matches your request.",
    );
    assert_eq!((class.instance_type, class.zone), (None, None));
}

#[test]
fn types_and_zones_are_read_only_where_they_are() {
    let table = [
        (
            "capacity of u-6tb1.metal in (eu-west-3a).",
            Some("u-6tb1.metal"),
            Some("eu-west-3a"),
        ),
        (
            "type (g5.xlarge) in (us-gov-west-1b)",
            Some("g5.xlarge"),
            Some("us-gov-west-1b"),
        ),
        ("see http://aws.amazon.com/contact-us (soon)", None, None),
        ("", None, None),
        ("((((", None, None),
    ];
    for (text, instance_type, zone) in table {
        assert_eq!(type_in(text).as_deref(), instance_type, "{text}");
        assert_eq!(zone_in(text).as_deref(), zone, "{text}");
    }
}

#[test]
fn codes_of_queues_hooks_roles_and_quotas() {
    let table: &[(Option<&str>, &str, FailureKind)] = &[
        (Some("AWS.SimpleQueueService.NonExistentQueue"), "", Config),
        (Some("QueueDoesNotExist"), "", Config),
        (Some("ReceiptHandleIsInvalid"), "", Gone),
        (Some("OverLimit"), "", Quota),
        (Some("KmsAccessDenied"), "", Permission),
        (Some("RequestThrottled"), "", Throttle),
        (
            Some("ValidationError"),
            "No active Lifecycle Action found with instance ID i-0123456789abcdef0",
            Gone,
        ),
        (
            Some("ValidationError"),
            "Auto Scaling group name not found: no AutoScalingGroup gpu-a",
            Gone,
        ),
        (
            Some("ValidationError"),
            "AutoScalingGroup name not found - AutoScalingGroup gpu-a not found",
            Gone,
        ),
        (Some("ActiveInstanceRefreshNotFound"), "", Gone),
        (Some("InstanceRefreshInProgress"), "", Contention),
        (
            Some("ResourceContention"),
            "You already have a pending update to an Amazon EC2 Auto Scaling resource",
            Contention,
        ),
        (
            Some("NoSuchEntity"),
            "The role with name x cannot be found.",
            Config,
        ),
        (Some("RegionDisabledException"), "", Permission),
        (Some("ServiceLinkedRoleFailure"), "", Permission),
        (Some("NoSuchResourceException"), "", Config),
        (Some("InvalidCapacityReservationId.NotFound"), "", Config),
        (
            Some("InvalidParameterValue"),
            "Invalid region names: ('us-esat-1')",
            Config,
        ),
        (
            Some("UnauthorizedOperation"),
            "You are not authorized to perform this operation.",
            Permission,
        ),
    ];
    for (code, text, kind) in table {
        let class = classify(*code, text);
        assert_eq!(class.kind, *kind, "{code:?} {text}");
        assert!(class.known, "{code:?} {text}");
    }
}

#[test]
fn credentials_are_told_from_what_they_permit_and_said_in_words() {
    use crate::{AwsError, Call, Region};
    let of = |code: &str| {
        let call = Call::DescribeAutoScalingGroups;
        AwsError::reported(
            call,
            &Region::from("us-east-1"),
            403,
            Some(code),
            "AWS says.",
        )
    };
    for (code, words) in [
        ("ExpiredToken", "have expired"),
        ("ExpiredTokenException", "have expired"),
        ("RequestExpired", "clock"),
        ("AuthFailure", "does not take"),
        ("InvalidClientTokenId", "does not take"),
        ("NoCredentials", "no usable AWS credentials"),
    ] {
        let error = of(code);
        assert_eq!(error.kind, Permission, "{code}");
        assert!(error.is_credentials(), "{code}");
        let text = error.to_string();
        assert!(
            text.contains(words) && text.ends_with("AWS says."),
            "{text}"
        );
    }
    for code in ["UnauthorizedOperation", "AccessDenied"] {
        let error = of(code);
        assert!(!error.is_credentials(), "{code}");
        assert_eq!(
            error.to_string(),
            format!("DescribeAutoScalingGroups in us-east-1: permission ({code}): AWS says.")
        );
    }
}
