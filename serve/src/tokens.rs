//! Tokens and sessions: who may do what, and until when.
//!
//! They are kept by their digests in one file of this user, so that an open page goes on with a server that was started
//! again. The token of the link is new at each start.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::write_atomic::{Durability, write_atomic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random;

/// How long a session of a browser lasts.
pub(crate) const SESSION: Duration = Duration::from_hours(30 * 24);
/// Sessions that are kept; the oldest ones end first.
const MAX_SESSIONS: usize = 1000;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// See jobs, and compile job files.
    Read,
    /// Also start and change jobs.
    Submit,
}

impl Access {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
        }
    }
}

/// Whom a token or a session stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// The name in the audit file.
    pub(crate) user: String,
    pub(crate) access: Access,
    /// When it ends; with the server, if absent.
    pub(crate) end: Option<Time>,
    /// The digest of the token that a session came from: it ends with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

/// The tokens of this server and the sessions of browsers.
pub(crate) struct Tokens {
    file: Utf8PathBuf,
    /// By the digests of tokens.
    links: Mutex<BTreeMap<String, Holder>>,
    /// By the digests of cookies.
    sessions: Mutex<BTreeMap<String, Holder>>,
}

impl Tokens {
    /// The sessions of earlier servers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn open(directory: &Utf8Path) -> Result<Self> {
        let file = directory.join("sessions.json");
        let sessions = match std::fs::read(&file) {
            // A file of another version ends the sessions in it.
            Ok(text) => serde_json::from_slice(&text).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(file_error("read", file.as_std_path(), &error)),
        };
        Ok(Self { file, links: Mutex::default(), sessions: Mutex::new(sessions) })
    }

    /// A new token.
    pub(crate) fn add(&self, user: &str, access: Access, lasts: Option<Duration>) -> Result<String> {
        let token = random::token()?;
        let end = lasts.map(after);
        let holder = Holder { user: user.to_owned(), access, end, token: None };
        self.links.lock().unwrap_or_else(PoisonError::into_inner).insert(random::digest(&token), holder);
        Ok(token)
    }

    /// Whom a token stands for.
    pub(crate) fn of_token(&self, token: &str) -> Option<Holder> {
        find(&self.links, token)
    }

    /// Whom the cookie of a session stands for.
    pub(crate) fn of_session(&self, cookie: &str) -> Option<Holder> {
        find(&self.sessions, cookie)
    }

    /// Exchanges a token for the cookie of a new session.
    ///
    /// # Errors
    /// The sessions cannot be written.
    pub(crate) fn begin(&self, token: &str) -> Result<Option<(String, Holder)>> {
        let Some(holder) = self.of_token(token) else { return Ok(None) };
        let end = holder.end.unwrap_or_else(|| after(SESSION)).min(after(SESSION));
        let shared = holder.end.map(|_| random::digest(token));
        let holder = Holder { end: Some(end), token: shared, ..holder };
        let cookie = random::token()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Time::now();
        sessions.retain(|_, holder| holder.end.is_some_and(|end| end > now));
        while sessions.len() >= MAX_SESSIONS {
            let oldest =
                sessions.iter().min_by_key(|(_, holder)| holder.end).map(|(digest, _)| digest.clone());
            oldest.and_then(|digest| sessions.remove(&digest));
        }
        sessions.insert(random::digest(&cookie), holder.clone());
        self.write(&sessions)?;
        Ok(Some((cookie, holder)))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The sessions cannot be written.
    pub(crate) fn end(&self, cookie: &str) -> Result<()> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&random::digest(cookie));
        self.write(&sessions)
    }

    fn write(&self, sessions: &BTreeMap<String, Holder>) -> Result<()> {
        let text =
            serde_json::to_vec(sessions).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        write_atomic(self.file.as_std_path(), &text, 0o600, Durability::Rename)
            .map_err(|error| file_error("write", self.file.as_std_path(), &error))
    }
}

fn find(holders: &Mutex<BTreeMap<String, Holder>>, secret: &str) -> Option<Holder> {
    let digest = random::digest(secret);
    let holders = holders.lock().unwrap_or_else(PoisonError::into_inner);
    // All of them, so that the time says neither whether nor where it was found.
    let mut found = None;
    for (known, holder) in &*holders {
        if random::equal(known, &digest) {
            found = Some(holder);
        }
    }
    found.filter(|holder| holder.end.is_none_or(|end| end > Time::now())).cloned()
}

fn after(lasts: Duration) -> Time {
    let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    Time::from_millis(Time::now().millis().saturating_add(lasts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(Utf8Path::from_path(directory.path()).unwrap()).unwrap();
        (directory, tokens)
    }

    #[test]
    fn a_session_outlives_the_server_and_its_file_has_no_secret() {
        let (directory, first) = tokens();
        let token = first.add("ada", Access::Submit, None).unwrap();
        let (cookie, holder) = first.begin(&token).unwrap().unwrap();
        assert_ne!(cookie, token);
        assert_eq!((holder.user.as_str(), holder.access), ("ada", Access::Submit));
        let text = std::fs::read_to_string(&first.file).unwrap();
        assert!(!text.contains(&cookie) && !text.contains(&token), "{text}");
        let next = Tokens::open(Utf8Path::from_path(directory.path()).unwrap()).unwrap();
        assert_eq!(next.of_session(&cookie), Some(holder));
        assert_eq!(next.of_token(&token), None, "the token of a link ends with its server");
        next.end(&cookie).unwrap();
        assert_eq!(next.of_session(&cookie), None);
    }

    #[test]
    fn a_shared_token_and_its_sessions_end() {
        let (_directory, tokens) = tokens();
        let token = tokens.add("guest", Access::Read, Some(Duration::from_millis(300))).unwrap();
        let (cookie, _) = tokens.begin(&token).unwrap().unwrap();
        assert_eq!(tokens.of_session(&cookie).unwrap().access, Access::Read);
        std::thread::sleep(Duration::from_millis(350));
        assert_eq!((tokens.of_token(&token), tokens.of_session(&cookie)), (None, None));
        assert!(tokens.begin(&token).unwrap().is_none());
    }

    #[test]
    fn a_guess_is_not_a_token() {
        let (_directory, tokens) = tokens();
        let token = tokens.add("ada", Access::Submit, None).unwrap();
        for guess in ["", &token[1..], &token.to_lowercase(), &random::digest(&token)] {
            assert_eq!(tokens.of_token(guess), None, "{guess}");
        }
        assert!(tokens.of_token(&token).is_some());
    }
}
