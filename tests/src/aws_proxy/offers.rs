//! Answers that come from the scenario alone: spot prices, reservations, quotas, refreshes, regions.
//!
//! Called by the server. Nothing here changes anything.

use serde_json::{Map, Value, json};

use super::clock::rfc3339;
use super::query::Query;
use super::reply::Reply;
use super::scenario::{QuotaRow, ReservationRow, SpotPriceRow, concerns};
use super::server::Proxy;
use super::xml::Element;

/// What an account has where the scenario names no quota: plenty.
const QUOTAS: [(&str, &str); 8] = [
    (
        "L-1216C47A",
        "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    ),
    ("L-417A185B", "Running On-Demand P instances"),
    ("L-DB2E81BA", "Running On-Demand G and VT instances"),
    ("L-1945791B", "Running On-Demand Inf instances"),
    (
        "L-34B43A08",
        "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
    ),
    ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    ("L-C4BD4855", "All P5 Spot Instance Requests"),
    ("L-3819A6DF", "All G and VT Spot Instance Requests"),
];
const PLENTY: f64 = 100_000.0;

fn matches(wanted: &[String], have: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|w| w == have)
}

/// One page of `rows`, and the token of the next.
fn page<T>(rows: Vec<T>, start: usize, size: usize) -> (Vec<T>, Option<String>) {
    let more = rows.len() > start.saturating_add(size);
    let next = more.then(|| (start + size).to_string());
    (rows.into_iter().skip(start).take(size).collect(), next)
}

fn ec2_page(query: &Query, action: &str, set: &str, rows: Vec<Element>) -> Reply {
    let size = query.number("MaxResults").unwrap_or(1_000).clamp(1, 1_000) as usize;
    let (items, next) = page(rows, query.page_start(), size);
    let token = Element::leaf("nextToken", next.unwrap_or_default());
    Reply::ec2(action, vec![Element::node(set, items), token])
}

/// Answers DescribeSpotPriceHistory: the newest price first.
pub(super) fn spot_prices(proxy: &Proxy, query: &Query) -> Reply {
    let (types, products) = (
        query.plain_list("InstanceType"),
        query.plain_list("ProductDescription"),
    );
    let (began, scenario) = (proxy.began_unix_ms(), proxy.scenario().clone());
    let product = |row: &SpotPriceRow| row.product.clone().unwrap_or("Linux/UNIX".to_owned());
    let zone = query.get("AvailabilityZone");
    let mut rows: Vec<&SpotPriceRow> = scenario
        .spot_prices
        .iter()
        .filter(|r| concerns(r.region.as_ref(), &query.region))
        .filter(|r| matches(&types, &r.instance_type) && matches(&products, &product(r)))
        .filter(|r| zone.is_empty() || zone == r.zone)
        .filter(|r| {
            query
                .filters()
                .iter()
                .all(|(name, values)| match name.as_str() {
                    "instance-type" => matches(values, &r.instance_type),
                    "availability-zone" => matches(values, &r.zone),
                    "product-description" => matches(values, &product(r)),
                    _ => true,
                })
        })
        .collect();
    rows.sort_by_key(|r| r.since_ms_ago);
    let items = rows
        .iter()
        .map(|r| {
            Element::node(
                "item",
                vec![
                    Element::leaf("instanceType", &r.instance_type),
                    Element::leaf("productDescription", product(r)),
                    Element::leaf("spotPrice", &r.usd_per_hour),
                    Element::leaf("timestamp", rfc3339(began.saturating_sub(r.since_ms_ago))),
                    Element::leaf("availabilityZone", &r.zone),
                ],
            )
        })
        .collect();
    ec2_page(
        query,
        "DescribeSpotPriceHistory",
        "spotPriceHistorySet",
        items,
    )
}

/// Answers DescribeCapacityReservations; an id that is not there is an error, as AWS's.
pub(super) fn reservations(proxy: &Proxy, query: &Query) -> Reply {
    let ids = query.plain_list("CapacityReservationId");
    let began = proxy.began_unix_ms();
    let scenario = proxy.scenario().clone();
    let rows: Vec<&ReservationRow> = scenario
        .reservations
        .iter()
        .filter(|r| concerns(r.region.as_ref(), &query.region))
        .collect();
    if let Some(id) = ids.iter().find(|id| !rows.iter().any(|r| r.id == **id)) {
        let text = format!("The capacity reservation '{id}' does not exist.");
        let code = "InvalidCapacityReservationId.NotFound";
        return Reply::error(query, 400, code, &text);
    }
    let state = |r: &ReservationRow| r.state.clone().unwrap_or("active".to_owned());
    let items = rows
        .into_iter()
        .filter(|r| matches(&ids, &r.id))
        .filter(|r| {
            query
                .filters()
                .iter()
                .all(|(name, values)| match name.as_str() {
                    "state" => matches(values, &state(r)),
                    "instance-type" => matches(values, &r.instance_type),
                    "availability-zone" => matches(values, &r.zone),
                    _ => true,
                })
        })
        .map(|r| {
            let at = |ms: i64| rfc3339(began.saturating_add_signed(ms));
            let (kind, rule) = (
                if r.block { "capacity-block" } else { "default" },
                if r.targeted { "targeted" } else { "open" },
            );
            let mut item = vec![
                Element::leaf("capacityReservationId", &r.id),
                Element::leaf("ownerId", "123456789012"),
                Element::leaf("instanceType", &r.instance_type),
                Element::leaf("instancePlatform", "Linux/UNIX"),
                Element::leaf("availabilityZone", &r.zone),
                Element::leaf("tenancy", "default"),
                Element::leaf("totalInstanceCount", r.total.to_string()),
                Element::leaf("availableInstanceCount", r.available.to_string()),
                Element::leaf("ebsOptimized", "false"),
                Element::leaf("ephemeralStorage", "false"),
                Element::leaf("state", state(r)),
                Element::leaf("instanceMatchCriteria", rule),
                Element::leaf("createDate", at(r.starts_in_ms.min(0))),
                Element::leaf("startDate", at(r.starts_in_ms)),
                Element::leaf("reservationType", kind),
            ];
            match r.ends_in_ms {
                Some(ms) => {
                    item.push(Element::leaf("endDateType", "limited"));
                    item.push(Element::leaf("endDate", at(ms)));
                }
                None => item.push(Element::leaf("endDateType", "unlimited")),
            }
            Element::node("item", item)
        })
        .collect();
    ec2_page(
        query,
        "DescribeCapacityReservations",
        "capacityReservationSet",
        items,
    )
}

/// Answers ListServiceQuotas (JSON).
pub(super) fn quotas(proxy: &Proxy, query: &Query) -> Reply {
    let body = query.json.as_ref().map_or(&Value::Null, |c| &c.body);
    let service = body["ServiceCode"].as_str().unwrap_or_default();
    let scenario = proxy.scenario().clone();
    let of = |r: &QuotaRow| r.service.as_deref().unwrap_or("ec2") == service;
    let named: Vec<(String, String, f64)> = scenario
        .quotas
        .iter()
        .filter(|r| concerns(r.region.as_ref(), &query.region) && of(r))
        .map(|r| (r.code.clone(), r.name.clone(), r.value))
        .collect();
    let rows = if !named.is_empty() {
        named
    } else if service == "ec2" {
        let all = QUOTAS.iter();
        all.map(|(c, n)| ((*c).to_owned(), (*n).to_owned(), PLENTY))
            .collect()
    } else {
        let text = "The request failed because the specified service does not exist.";
        return Reply::error(query, 400, "NoSuchResourceException", text);
    };
    let size = body["MaxResults"].as_u64().unwrap_or(100).clamp(1, 100);
    let start = body["NextToken"].as_str().and_then(|t| t.parse().ok());
    let size = usize::try_from(size).unwrap_or(100);
    let (rows, next) = page(rows, start.unwrap_or(0), size);
    let quotas: Vec<Value> = rows
        .into_iter()
        .map(|(code, name, value)| {
            let arn = format!(
                "arn:aws:servicequotas:{}:123456789012:{service}/{code}",
                query.region
            );
            json!({
                "ServiceCode": service, "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
                "QuotaArn": arn, "QuotaCode": code, "QuotaName": name, "Value": value,
                "Unit": "None", "Adjustable": true, "GlobalQuota": false,
            })
        })
        .collect();
    let mut answer = Map::from_iter([("Quotas".to_owned(), Value::from(quotas))]);
    if let Some(next) = next {
        answer.insert("NextToken".to_owned(), next.into());
    }
    Reply::of_value(&Value::Object(answer))
}

/// Answers DescribeInstanceRefreshes, in the order of the scenario (newest first).
pub(super) async fn refreshes(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    {
        let handle = proxy.region(&query.region);
        let mut state = handle.lock().await;
        let group = proxy.view(&mut state, &query.region, query.group()).await?;
        if group.is_none() {
            return Ok(Reply::no_group(query));
        }
    }
    let began = proxy.began_unix_ms();
    let scenario = proxy.scenario().clone();
    let ids = query.list("InstanceRefreshIds");
    let rows = scenario
        .refreshes
        .iter()
        .filter(|r| concerns(r.region.as_ref(), &query.region) && r.group == query.group())
        .filter(|r| matches(&ids, &r.id))
        .map(|r| {
            Element::node(
                "member",
                vec![
                    Element::leaf("InstanceRefreshId", &r.id),
                    Element::leaf("AutoScalingGroupName", &r.group),
                    Element::leaf("Status", &r.status),
                    Element::leaf("StartTime", rfc3339(began.saturating_sub(r.started_ms_ago))),
                    Element::leaf("PercentageComplete", r.percent.to_string()),
                ],
            )
        })
        .collect();
    let size = query.number("MaxRecords").unwrap_or(50).clamp(1, 100) as usize;
    let (rows, next) = page(rows, query.page_start(), size);
    let mut result = vec![Element::node("InstanceRefreshes", rows)];
    result.extend(next.map(|n| Element::leaf("NextToken", n)));
    Ok(Reply::result("DescribeInstanceRefreshes", result))
}

/// The refusal of a call to a region that does not exist, or that asks for one. moto answers 500 or nothing.
pub(super) async fn wrong_region(proxy: &Proxy, query: &Query) -> Result<Option<Reply>, String> {
    if query.service == "iam" {
        return Ok(None);
    }
    if !proxy.knows_region(&query.region).await? {
        let text = "Credential should be scoped to a valid region.";
        let (status, code) = match query.service.as_str() {
            "ec2" => (401, "AuthFailure"),
            _ => (403, "SignatureDoesNotMatch"),
        };
        return Ok(Some(Reply::error(query, status, code, text)));
    }
    if query.action == "DescribeRegions" {
        for name in query.plain_list("RegionName") {
            if !proxy.knows_region(&name).await? {
                let text =
                    format!("Invalid value '{name}' for regionName. The region does not exist.");
                return Ok(Some(Reply::error(
                    query,
                    400,
                    "InvalidParameterValue",
                    &text,
                )));
            }
        }
    }
    Ok(None)
}
