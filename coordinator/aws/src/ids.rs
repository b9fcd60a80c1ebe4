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

id! {
    /// An AWS region, for instance `us-east-1`.
    Region
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
