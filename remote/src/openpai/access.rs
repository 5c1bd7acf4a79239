//! How the rest-server is reached, and the token that says who asks.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jobc_container::secret::Secret;
use jobc_sys::error::{Error, Kind, Result, file_error};
use serde::Deserialize;

/// How to get a token: the same words in every error.
const GET_A_TOKEN: &str = "create a token on the profile page of the web portal";

/// How a cluster is reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address of the rest-server, without `/` at the end.
    pub server: String,
    /// The address of the web portal, which serves output; without `/` at the end.
    pub portal: String,
    /// Where the token is.
    pub token: TokenSource,
    /// A file with the certificate authority; those of the host by default.
    pub authority: Option<PathBuf>,
    /// The virtual cluster of the target.
    pub virtual_cluster: String,
}

/// Where a token is read from; it is never an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Env(String),
}

impl Access {
    /// The address of the web portal if the target names none: pylon serves the rest-server below `/rest-server`
    /// (pai, `src/pylon/deploy/pylon-config/location.conf.template`).
    pub fn portal_of(server: &str) -> String {
        let server = server.trim_end_matches('/');
        server.strip_suffix("/rest-server").unwrap_or(server).to_owned()
    }
}

/// A token, with what it says about itself.
#[derive(Clone)]
pub(crate) struct Token {
    secret: Secret,
    /// The user's name on the cluster.
    pub(crate) user: String,
    /// When it expires, in seconds of Unix time; a token of an application does not.
    expires: Option<u64>,
}

/// What a rest-server signs (pai, `src/rest-server/src/models/token.js`).
#[derive(Deserialize)]
struct Claims {
    username: String,
    #[serde(default)]
    exp: Option<u64>,
}

impl Token {
    /// Reads the token from its source.
    pub(crate) fn read(source: &TokenSource) -> Result<Self> {
        let (text, what) = match source {
            TokenSource::File(path) => (
                std::fs::read_to_string(path)
                    .map_err(|error| file_error("read the token", path, &error).help(GET_A_TOKEN))?,
                format!("the file `{}`", path.display()),
            ),
            TokenSource::Env(name) => (
                std::env::var(name).map_err(|_| {
                    Error::new(Kind::Config, format!("the environment variable `{name}` is not set"))
                        .help(format!("it must have your token; {GET_A_TOKEN}"))
                })?,
                format!("the environment variable `{name}`"),
            ),
        };
        Self::parse(text.trim())
            .ok_or_else(|| Error::new(Kind::Config, format!("{what} has no OpenPAI token")).help(GET_A_TOKEN))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (Some(_), Some(payload), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte)) {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Claims = serde_json::from_slice(&payload).ok()?;
        let user = claims.username;
        (!user.is_empty()).then(|| Self { secret: Secret::new(text), user, expires: claims.exp })
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", String::from_utf8_lossy(self.secret.bytes()))
    }

    /// Whether it is the same token.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.secret == other.secret
    }

    /// What to do after the server refused it.
    pub(crate) fn renewal(&self, source: &TokenSource) -> String {
        let place = match source {
            TokenSource::File(path) => format!("write it to `{}`", path.display()),
            TokenSource::Env(name) => format!("set `{name}` to it"),
        };
        let expired = self.expires.map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at));
        match expired.filter(|at| *at <= SystemTime::now()) {
            Some(at) => {
                let at = humantime::format_rfc3339_seconds(at);
                format!("the token expired at {at}; {GET_A_TOKEN}, and {place}")
            }
            None => format!("the token is invalid or was revoked; {GET_A_TOKEN}, and {place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_names_its_user() {
        let parsed = Token::parse(&token(r#"{"username":"alice","application":true,"iat":1}"#)).unwrap();
        assert_eq!((parsed.user.as_str(), parsed.expires), ("alice", None));
        assert!(parsed.header().starts_with("Bearer e30."));
        for wrong in ["", "secret", "a.b.c", &token(r#"{"username":""}"#), &token("{}"), "a b.c.d"] {
            assert!(Token::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_refused_token_is_renewed_where_it_was_read() {
        let source = TokenSource::Env("PAI_TOKEN".to_owned());
        let old = Token::parse(&token(r#"{"username":"a","exp":1000000000}"#)).unwrap().renewal(&source);
        assert!(old.starts_with("the token expired at 2001-09-09T01:46:40Z;"), "{old}");
        assert!(old.ends_with("and set `PAI_TOKEN` to it"), "{old}");
        let revoked = Token::parse(&token(r#"{"username":"a"}"#)).unwrap().renewal(&source);
        assert!(revoked.starts_with("the token is invalid or was revoked;"), "{revoked}");
    }

    #[test]
    fn a_portal_is_above_its_rest_server() {
        for (server, portal) in [
            ("https://pai.example.com/rest-server/", "https://pai.example.com"),
            ("https://example.com/pai/rest-server", "https://example.com/pai"),
            ("http://10.0.0.1:9186", "http://10.0.0.1:9186"),
        ] {
            assert_eq!(Access::portal_of(server), portal);
        }
    }
}
