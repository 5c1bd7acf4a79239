//! The server, and who its callers are.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap};
use jobc_place::time::Time;

use crate::actor::{Actor, Credential};
use crate::audit::Audit;
use crate::clusters::ClusterCache;
use crate::follow::Followed;
use crate::follow::backlog::Backlogs;
use crate::guard::Hosts;
use crate::limits::Limits;
use crate::local_jobs::LocalJobs;
use crate::options::{Options, Proxy};
use crate::owners::Owners;
use crate::peer::Peer;
use crate::problem::Problem;

use crate::tokens::{Access, Holder, Tokens};
use crate::uploads::Uploads;
use crate::workspace::Workspace;

/// The name of the cookie with a session.
pub(crate) const COOKIE_NAME: &str = "jobc_session";
/// The longest name of a user that a proxy may send.
const MAX_USER: usize = 64;

/// A server: what all connections share.
pub(crate) struct Server {
    pub(crate) options: Options,
    /// The user who runs it.
    pub(crate) user: String,
    pub(crate) is_tls: bool,
    pub(crate) hosts: Hosts,
    pub(crate) tokens: Tokens,
    pub(crate) audit: Audit,
    pub(crate) owners: Owners,
    pub(crate) limits: Arc<Limits>,
    pub(crate) followed: Followed,
    pub(crate) backlogs: Backlogs,
    pub(crate) jobs: LocalJobs,
    pub(crate) clusters: Arc<ClusterCache>,
    pub(crate) uploads: Uploads,
    pub(crate) workspace: Workspace,
    /// Requests with an idempotency key start jobs one after the other.
    pub(crate) submitting: tokio::sync::Mutex<()>,
}

impl Server {
    /// Who sends a request.
    ///
    /// # Errors
    /// It does not say so, or may not.
    pub(crate) fn actor(&self, peer: Peer, headers: &HeaderMap) -> Result<Actor, Problem> {
        if let Some(actor) = self.by_socket(peer, headers)? {
            return Ok(actor);
        }
        if let Some(token) = bearer(headers) {
            let holder = self.tokens.of_token(token).ok_or_else(unauthorized)?;
            return Ok(Self::actor_of(holder, Credential::Token));
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let sessions = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == COOKIE_NAME);
        for (_, cookie) in sessions.take(4) {
            if let Some(holder) = self.tokens.of_session(cookie) {
                return Ok(Self::actor_of(holder, Credential::Cookie(cookie.to_owned())));
            }
        }
        Err(unauthorized())
    }

    /// The user at the other end of a Unix socket, or the one whom a trusted proxy there names.
    fn by_socket(&self, peer: Peer, headers: &HeaderMap) -> Result<Option<Actor>, Problem> {
        let Some(uid) = peer.uid() else { return Ok(None) };
        let own = rustix::process::getuid().as_raw();
        let proxy = self.options.proxy.as_ref();
        if let Some(proxy) = proxy.filter(|proxy| proxy.uid == uid) {
            // Not this server's user, even if the proxy runs as that: a proxy that forgets the header must not open all.
            return if has_token(headers) { Ok(None) } else { self.by_proxy(proxy, headers).map(Some) };
        }
        if uid != own && uid != 0 {
            return Err(Problem::forbidden("this socket is for the user who started the server"));
        }
        Ok(Some(Actor {
            user: self.user.clone(),
            access: Access::Submit,
            is_operator: true,
            credential: Credential::Peer,
        }))
    }

    fn by_proxy(&self, proxy: &Proxy, headers: &HeaderMap) -> Result<Actor, Problem> {
        let mut given = headers.get_all(proxy.header.as_str()).iter();
        let (user, second) = (given.next(), given.next());
        let is_valid = |user: &&str| {
            (1..=MAX_USER).contains(&user.len())
                && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte))
        };
        let user = user.filter(|_| second.is_none()).and_then(|user| user.to_str().ok()).filter(is_valid);
        let user = user.ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, format!("the proxy names no user in `{}`", proxy.header))
        })?;
        Ok(Actor {
            user: user.to_owned(),
            access: Access::Submit,
            is_operator: self.options.operators.iter().any(|operator| operator == user),
            credential: Credential::Proxy,
        })
    }

    fn actor_of(holder: Holder, credential: Credential) -> Actor {
        Actor { user: holder.user, access: holder.access, is_operator: true, credential }
    }

    /// Writes a line of the audit file about a request that was refused or is no action.
    pub(crate) fn note(&self, user: &str, peer: Peer, action: &str, about: &str, status: StatusCode) {
        let line = crate::audit::Line {
            time: Time::now().to_string(),
            user: user.to_owned(),
            from: peer.to_string(),
            action: action.to_owned(),
            about: about.to_owned(),
            status: status.as_u16(),
            ..crate::audit::Line::default()
        };
        if let Err(error) = self.audit.write(&line) {
            eprintln!("jobc serve: {}", error.message());
        }
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    bearer(headers).is_some()
}

/// The token of the header `Authorization`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "log in first: open the link that `jobc serve` printed")
        .hint("a program sends the token of the link as `Authorization: Bearer TOKEN`")
}
