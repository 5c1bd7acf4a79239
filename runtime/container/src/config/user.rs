//! Who the container's process is: `process.user`.

use oci_spec::runtime::User as Written;

use jobc_sys::error::{Error, Kind, Result};

/// Maximum number of groups of a process (`NGROUPS_MAX`).
pub const MAX_GROUPS: usize = 65536;

/// The user of the container's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its user id in the container.
    pub uid: u32,
    /// Its group id.
    pub gid: u32,
    /// Its list of supplementary groups, for setgroups(2).
    pub additional: Vec<u32>,
    /// Its umask, where config.json gives one; else the caller's umask stays.
    pub umask: Option<u32>,
}

impl User {
    /// The user that config.json's `process.user` describes.
    pub fn of(written: &Written) -> Result<Self> {
        let id = |field: String, id: u32| {
            // setresuid(2) takes it as "leave as it is", which here would be root.
            let wrong = || {
                Error::new(Kind::Config, format!("{id} is not a valid id"))
                    .at(format!("/process/user/{field}"))
            };
            if id == u32::MAX { Err(wrong().help("ids go from 0 to 4294967294")) } else { Ok(id) }
        };
        let additional = written.additional_gids().as_deref().unwrap_or_default();
        if additional.len() > MAX_GROUPS {
            let message = format!("{} groups, but the kernel allows at most {MAX_GROUPS}", additional.len());
            return Err(Error::new(Kind::Config, message).at("/process/user/additionalGids"));
        }
        if let Some(umask) = written.umask().filter(|umask| *umask > 0o777) {
            return Err(Error::new(Kind::Config, format!("{umask} has more than the permission bits"))
                .at("/process/user/umask")
                .help("write it as a decimal number up to 511, which is 0777"));
        }
        let additional = additional.iter().enumerate();
        Ok(Self {
            uid: id("uid".to_owned(), written.uid())?,
            gid: id("gid".to_owned(), written.gid())?,
            additional: additional
                .map(|(index, gid)| id(format!("additionalGids/{index}"), *gid))
                .collect::<Result<_>>()?,
            umask: written.umask(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A `process.user`, and the resulting user or the error.
    fn read(user: &Value) -> String {
        let typed: Written = serde_json::from_value(user.clone()).expect("a user");
        match User::of(&typed) {
            Ok(user) => format!("{user:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn users_of_config_json() {
        let cases = [
            json!({"uid": 0, "gid": 0}),
            json!({"uid": 1, "gid": 2, "additionalGids": [3, 4], "umask": 18}),
            json!({"uid": u32::MAX, "gid": 0}),
            json!({"uid": 0, "gid": u32::MAX}),
            json!({"uid": 0, "gid": 0, "additionalGids": [3, u32::MAX]}),
            json!({"uid": 0, "gid": 0, "umask": 512}),
        ];
        insta::assert_snapshot!(cases.map(|user| format!("{user}\n  {}\n", read(&user))).concat());
        let many = json!({"uid": 0, "gid": 0, "additionalGids": vec![7; 65537]});
        assert_eq!(
            read(&many),
            "config.json: /process/user/additionalGids: 65537 groups, but the kernel allows at most 65536"
        );
    }
}
