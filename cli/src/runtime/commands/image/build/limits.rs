//! `--ulimit NAME=SOFT[:HARD]`, as docker reads it.

use jobc_image::build::{PosixRlimitType, Rlimit};
use jobc_sys::error::{Error, Kind, Result};

/// The limits, by their names in docker.
const LIMITS: [(&str, PosixRlimitType); 16] = [
    ("core", PosixRlimitType::RlimitCore),
    ("cpu", PosixRlimitType::RlimitCpu),
    ("data", PosixRlimitType::RlimitData),
    ("fsize", PosixRlimitType::RlimitFsize),
    ("locks", PosixRlimitType::RlimitLocks),
    ("memlock", PosixRlimitType::RlimitMemlock),
    ("msgqueue", PosixRlimitType::RlimitMsgqueue),
    ("nice", PosixRlimitType::RlimitNice),
    ("nofile", PosixRlimitType::RlimitNofile),
    ("nproc", PosixRlimitType::RlimitNproc),
    ("rss", PosixRlimitType::RlimitRss),
    ("rtprio", PosixRlimitType::RlimitRtprio),
    ("rttime", PosixRlimitType::RlimitRttime),
    ("sigpending", PosixRlimitType::RlimitSigpending),
    ("stack", PosixRlimitType::RlimitStack),
    ("as", PosixRlimitType::RlimitAs),
];

/// Reads a limit.
pub(super) fn ulimit(text: &str) -> Result<Rlimit> {
    let refused = |why: String, help: String| Error::new(Kind::Config, why).help(help);
    let invalid = || {
        refused(
            format!("invalid limit `{text}`"),
            "write `NAME=SOFT[:HARD]`, such as `nofile=1024:4096`".into(),
        )
    };
    let (name, value) = text.split_once('=').ok_or_else(invalid)?;
    let kind = LIMITS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<String> = LIMITS.iter().map(|(name, _)| format!("`{name}`")).collect();
        refused(format!("unknown limit `{name}`"), format!("write one of {}", names.join(", ")))
    })?;
    let number = |text: &str| match text {
        "-1" | "unlimited" => Ok(u64::MAX),
        text => text.parse::<u64>().map_err(|_| invalid()),
    };
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let (soft, hard) = (number(soft)?, number(hard)?);
    if soft > hard {
        return Err(refused(
            format!("the soft limit of `{text}` is larger than the hard limit"),
            "write the smaller number first".to_owned(),
        ));
    }
    Ok(Rlimit { kind, soft, hard })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_docker_reads_them() {
        let check =
            |text: &str| ulimit(text).map(|limit| (limit.soft, limit.hard)).map_err(|error| error.message());
        assert_eq!(check("nofile=1024:4096"), Ok((1024, 4096)));
        assert_eq!(check("core=0"), Ok((0, 0)));
        assert_eq!(check("memlock=-1"), Ok((u64::MAX, u64::MAX)));
        assert_eq!(check("stack=8:unlimited"), Ok((8, u64::MAX)));
        for (text, words) in [
            ("nofile", "invalid limit"),
            ("nofile=", "invalid limit"),
            ("nofile=x", "invalid limit"),
            ("files=1", "unknown limit `files`"),
            ("nofile=2:1", "larger than the hard limit"),
        ] {
            assert!(check(text).unwrap_err().contains(words), "{text}");
        }
    }
}
