//! Whether a region exists and takes the credentials.
//!
//! Called by `survey` only. A region that does not exist has no address: only another region can say so.

use crate::sdk::SdkAws;
use crate::sdk::turn::Turn;
use crate::{AwsError, Call, FailureKind, Region};

pub(super) async fn check(aws: &SdkAws, region: &Region) -> Result<(), AwsError> {
    let mut turn = aws.turn(region, Call::DescribeRegions);
    let own = match ask(aws, region, &mut turn).await {
        Ok(true) => return Ok(()),
        Ok(false) => return Err(unknown(region)),
        Err(error) => error,
    };
    let home = &aws.settings.home_region;
    // No answer at all may mean that there is no such place.
    let silent = own.code.is_none() && home.as_str() != region.as_str();
    match own.kind {
        FailureKind::Config => Err(unknown(region)),
        _ if silent => match ask(aws, home, &mut turn).await {
            Ok(false) => Err(unknown(region)),
            Err(other) if other.kind == FailureKind::Config => Err(unknown(region)),
            _ => Err(own),
        },
        _ => Err(own),
    }
}

/// Whether `asked` knows the region of the turn; the error is that of the call.
async fn ask(aws: &SdkAws, asked: &Region, turn: &mut Turn<'_>) -> Result<bool, AwsError> {
    let clients = aws.clients(asked).await;
    let name = turn.region.as_str();
    let request = clients
        .ec2
        .describe_regions()
        .region_names(name)
        .all_regions(true);
    let reply = turn.read(|| request.clone().send()).await?;
    let regions = reply.regions.unwrap_or_default();
    Ok(regions
        .iter()
        .any(|r| r.region_name.as_deref() == Some(name)))
}

fn unknown(region: &Region) -> AwsError {
    let text = format!(
        "AWS has no region {:?}: check its spelling",
        region.as_str()
    );
    AwsError::unreported(
        Call::DescribeRegions,
        region,
        FailureKind::Config,
        text,
        false,
    )
}
