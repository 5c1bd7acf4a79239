//! Platforms (image-spec, image-index.md): which system and processor an image is for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::unknown_fields::UnknownFields;
use jobc_sys::error::{Error, Kind};

/// A system and a processor, by Go's names: `linux/amd64`, `linux/arm64/v8`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// The processor.
    pub architecture: String,
    /// The system.
    pub os: String,
    /// The variant of the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Unknown fields: the version of the operating system and its features.
    #[serde(flatten)]
    pub rest: UnknownFields,
}

impl Platform {
    /// A platform without features.
    pub fn new(os: &str, architecture: &str, variant: Option<&str>) -> Self {
        Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.map(str::to_owned),
            rest: UnknownFields::new(),
        }
    }

    /// This host.
    pub fn here() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self::new("linux", architecture, None)
    }

    /// How well an image for a platform matches this requested one: 0 not at all, higher is better.
    ///
    /// An absent variant is the processor's usual one (containerd's rule: `v8` for arm64, `v7` for arm).
    pub fn match_score(&self, requested: &Self) -> u8 {
        if self.os != requested.os || self.architecture != requested.architecture {
            return 0;
        }
        if self.default_variant() == requested.default_variant() {
            return if self.variant == requested.variant { 3 } else { 2 };
        }
        // An older variant of the same processor runs as well: v6 where v7 is.
        u8::from(self.default_variant() < requested.default_variant())
    }

    fn default_variant(&self) -> &str {
        match (self.architecture.as_str(), self.variant.as_deref()) {
            ("arm64", None) => "v8",
            ("arm", None) => "v7",
            ("amd64", None) => "v1",
            (_, variant) => variant.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split('/');
        let (os, architecture, variant) = (parts.next(), parts.next(), parts.next());
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        match (os, architecture) {
            (Some(os), Some(architecture))
                if word(os) && word(architecture) && variant.is_none_or(word) && parts.next().is_none() =>
            {
                Ok(Self::new(os, architecture, variant))
            }
            _ => Err(Error::new(Kind::Config, format!("`{text}` is not a platform")).help(
                "write the operating system and the architecture, such as `linux/amd64` or `linux/arm64/v8`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_serves_its_platform_and_newer_variants() {
        let check = |image: &str, requested: &str, how_well: u8| {
            let platform = |text: &str| text.parse::<Platform>().unwrap();
            assert_eq!(
                platform(image).match_score(&platform(requested)),
                how_well,
                "{image} for {requested}"
            );
        };
        check("linux/amd64", "linux/amd64", 3);
        check("linux/arm64/v8", "linux/arm64", 2);
        check("linux/arm/v6", "linux/arm/v7", 1);
        check("linux/arm/v7", "linux/arm/v6", 0);
        check("linux/amd64/v3", "linux/amd64", 0);
        check("linux/arm64", "linux/amd64", 0);
        check("windows/amd64", "linux/amd64", 0);
    }

    #[test]
    fn what_is_no_platform_says_what_to_write() {
        for text in ["", "linux", "linux/", "linux/amd64/v1/x", "linux/am d64"] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }
}
