//! `/session`: a token is exchanged for a cookie.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use hyper::StatusCode;
use hyper::header::{HeaderValue, SET_COOKIE};
use jobc_place::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Credential;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::limits::BODY_TIMEOUT;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::reply::{Answer, json, nothing};
use crate::server::{COOKIE_NAME, Server};
use crate::tokens::{Access, SESSION};

/// The longest body with a token.
const MAX_BYTES: usize = 4096;

/// A token of a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// What is after `#token=` in the link.
    pub(crate) token: String,
}

/// Who the caller is, and what there is.
#[derive(Serialize, JsonSchema)]
struct Session {
    /// The user.
    user: String,
    /// What the user may do.
    access: Access,
    /// Whether jobs of other users are shown.
    operator: bool,
    /// The version of jobc.
    version: &'static str,
    /// The name of this host.
    host: String,
    /// Where relative paths of job files are below; not shown to users of a proxy.
    directory: Option<String>,
    /// The directories that are open.
    roots: Vec<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/session", "session", "Show who the caller is", handler!(show))
            .answer(schema::<Session>),
        Endpoint {
            access: Access::Read,
            ..Endpoint::change("DELETE", "/session", "logout", "End the session", handler!(end)).status(204)
        },
    ]
}

async fn show(call: Call) -> Answer {
    let server = &call.server;
    let roots = server.workspace.roots().iter().map(ToString::to_string);
    json(&Session {
        user: call.actor.user.clone(),
        access: call.actor.access,
        operator: call.actor.is_operator,
        version: server.options.version,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        directory: call.actor.is_operator.then(|| server.workspace.first().to_string()),
        // Only operators learn where they are.
        roots: if call.actor.is_operator { roots.collect() } else { vec![] },
    })
}

async fn end(call: Call) -> Answer {
    if let Credential::Cookie(cookie) = &call.actor.credential {
        call.server.tokens.end(cookie)?;
    }
    let mut answer = nothing();
    let cookie = format!("{COOKIE_NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// Begins a session, for a caller without one.
pub(crate) async fn begin(server: Arc<Server>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let Some(peer) = peer else { return Problem::of_host("the connection is not known").into_response() };
    if let Err(problem) = server.limits.request(&format!("login from {peer}")) {
        return problem.into_response();
    }
    let result = exchange(&server, request.into_body()).await;
    let (user, status) = match &result {
        Ok((user, response)) => (user.as_str(), response.status()),
        Err(problem) => ("", StatusCode::from_u16(problem.status).unwrap_or_default()),
    };
    server.note(user, peer, "login", "", status);
    result.map_or_else(Problem::into_response, |(_, response)| response)
}

async fn exchange(server: &Server, body: Body) -> Result<(String, Response), Problem> {
    let wrong = || Problem::bad_request("write {\"token\": TOKEN}");
    let bytes = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, MAX_BYTES)).await;
    let bytes = bytes.map_err(|_| wrong())?.map_err(|_| wrong())?;
    let login: Login = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    let Some((cookie, holder)) = server.tokens.begin(&login.token)? else {
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "the token is unknown, or has ended")
            .hint("open the link that `jobc serve` printed when it was started last"));
    };
    let lasts = holder.end.map_or(SESSION, |end| end.since(Time::now())).as_secs();
    let secure = if server.is_tls { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE_NAME}={cookie}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}");
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie =
        HeaderValue::from_str(&cookie).map_err(|_| Problem::of_host("the cookie is not a header"))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok((holder.user, response))
}
