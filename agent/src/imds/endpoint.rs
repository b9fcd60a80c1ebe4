//! Where metadata is asked for. Called at the start of the collector.

use std::path::Path;

use hyper::Uri;

use crate::collector::ImdsConfig;
use crate::host::files::word;

/// Environment variable of the AWS SDKs.
const VARIABLE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path before /latest, without a slash at its end.
    pub prefix: String,
}

/// The text is no `http://HOST[:PORT][/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("metadata endpoint {0:?} is not of the form http://HOST[:PORT][/PREFIX]")]
pub struct BadEndpoint(pub String);

impl Endpoint {
    /// Reads `http://HOST[:PORT][/PREFIX]`.
    ///
    /// # Errors
    /// [`BadEndpoint`] for another form.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let host = uri.host().ok_or_else(bad)?;
        if uri.scheme_str() != Some("http") || uri.query().is_some() {
            return Err(bad());
        }
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// For the Host header.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == 80 {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// The one to ask on this host, `None` when it is no EC2 instance.
    ///
    /// # Errors
    /// [`BadEndpoint`] for an endpoint that was given.
    pub fn find(config: &ImdsConfig, sys: &Path) -> Result<Option<Self>, BadEndpoint> {
        if config.disabled {
            return Ok(None);
        }
        let given = config
            .endpoint
            .clone()
            .or_else(|| std::env::var(VARIABLE).ok());
        if let Some(text) = given.filter(|text| !text.is_empty()) {
            return Self::parse(&text).map(Some);
        }
        let vendor = word(&sys.join("class/dmi/id/sys_vendor"));
        Ok((vendor.as_deref() == Some("Amazon EC2")).then(|| Self {
            host: "169.254.169.254".to_owned(),
            port: 80,
            prefix: String::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let end = |host: &str, port, prefix: &str| {
            Ok(Endpoint {
                host: host.to_owned(),
                port,
                prefix: prefix.to_owned(),
            })
        };
        assert_eq!(
            Endpoint::parse("http://127.0.0.1:9000/i-123"),
            end("127.0.0.1", 9000, "/i-123")
        );
        assert_eq!(
            Endpoint::parse("http://[fd00:ec2::254]/"),
            end("fd00:ec2::254", 80, "")
        );
        for bad in ["https://x", "127.0.0.1:9000", "http://x?y=1", ""] {
            assert_eq!(Endpoint::parse(bad), Err(BadEndpoint(bad.to_owned())));
        }
    }

    #[test]
    fn only_ec2_hosts_ask_the_default_endpoint() {
        let sys = tempfile::tempdir().unwrap();
        let config = ImdsConfig::default();
        assert_eq!(Endpoint::find(&config, sys.path()), Ok(None));
        let dmi = sys.path().join("class/dmi/id");
        std::fs::create_dir_all(&dmi).unwrap();
        std::fs::write(dmi.join("sys_vendor"), "Amazon EC2\n").unwrap();
        let found = Endpoint::find(&config, sys.path()).unwrap().unwrap();
        assert_eq!(found.authority(), "169.254.169.254");
        let off = ImdsConfig {
            disabled: true,
            ..config
        };
        assert_eq!(Endpoint::find(&off, sys.path()), Ok(None));
    }
}
