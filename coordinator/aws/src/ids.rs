//! Names that AWS gives to things, each a type of its own so that they cannot be mixed up.
//!
//! Used by everything in this crate and by its callers. They carry text as AWS spells it and check nothing.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as AWS spells it.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text as AWS spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

/// Where calls go: a region, and the role that is assumed there when it is not the credentials' own account.
///
/// The same region of two accounts is two regions here: they share no client, no bucket and no trouble.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    name: String,
    role: Option<String>,
}

impl Region {
    /// A region of the credentials' own account, for instance `us-east-1`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role: None,
        }
    }

    /// The same region as seen by this role (its ARN).
    #[must_use]
    pub fn with_role(mut self, arn: impl Into<String>) -> Self {
        self.role = Some(arn.into());
        self
    }

    /// The region's name as AWS spells it.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// ARN of the role that is assumed; `None` for the credentials' own.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// The account of the role, where its ARN says it.
    pub fn account(&self) -> Option<&str> {
        self.role()?.split(':').nth(4).filter(|id| !id.is_empty())
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match (self.account(), self.role()) {
            (Some(account), _) => write!(f, " of account {account}"),
            (None, Some(role)) => write!(f, " as {role}"),
            (None, None) => Ok(()),
        }
    }
}

impl From<&str> for Region {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Region {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

id! {
    /// The name of an Auto Scaling group, unique within account and region.
    GroupName
}
id! {
    /// An EC2 instance id, for instance `i-0123456789abcdef0`.
    InstanceId
}
id! {
    /// What makes a LaunchInstances call repeatable: the same token asks for the same instances.
    ClientToken
}
id! {
    /// The id of a capacity reservation, for instance `cr-0123456789abcdef0`.
    ReservationId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_makes_another_region_and_names_its_account() {
        let own = Region::new("us-east-1");
        let other = own
            .clone()
            .with_role("arn:aws:iam::123456789012:role/drover");
        assert_ne!(own, other);
        assert_eq!(own.to_string(), "us-east-1");
        assert_eq!(other.to_string(), "us-east-1 of account 123456789012");
        assert_eq!(other.as_str(), "us-east-1");
        assert_eq!(own.with_role("odd").to_string(), "us-east-1 as odd");
    }
}
