//! `[sim]`: where the simulated cloud is.
//!
//! Called by `config::parse`.

use super::url;
use drover_config::Section;
use std::path::PathBuf;

/// The simulated cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sim {
    /// Address of `drover sim-cloud`, loopback.
    pub cloud: Option<String>,
    /// Or the file of the world that is embedded.
    pub world: Option<PathBuf>,
}

pub(super) fn read(section: &Section<'_>) -> Sim {
    let cloud = section.parsed("cloud", "http://127.0.0.1:7900", |text| {
        let url = url(text)?;
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
        let loopback = host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if loopback {
            Ok(url)
        } else {
            Err(format!(
                "{text:?} is no loopback address: the simulated cloud speaks without TLS"
            ))
        }
    });
    let world = section.text("world", "write the path of a world file");
    if let (Some(_), Some(world)) = (&cloud, &world) {
        section.report(
            world.offset,
            "world",
            "stands beside cloud",
            "keep one of the two",
        );
    }
    section.finish();
    Sim {
        cloud,
        world: world.map(|at| at.value.into()),
    }
}
