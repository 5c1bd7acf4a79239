//! The table of what can be called, and what is checked before it is.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};

use axum::RequestExt as _;
use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use hyper::StatusCode;
use hyper::header::WWW_AUTHENTICATE;
use hyper::upgrade::OnUpgrade;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::actor::Credential;
use crate::audit::Line;
use crate::call::{Arrival, Call, Notes};
use crate::guard::OWN_HEADER;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::reply::Answer;
use crate::server::Server;
use crate::tokens::Access;

/// A function that answers.
pub(crate) type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;
/// The schema of a type, where the document needs it.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A function as a handler of the table.
macro_rules! handler {
    ($function:path) => {
        |call| Box::pin($function(call))
    };
}
pub(crate) use handler;

/// The schema of a type.
pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What can be called, which is also what the OpenAPI document says.
#[derive(Clone, Copy)]
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    /// The path below the base, with `{name}` for parts.
    pub(crate) path: &'static str,
    /// The name of the operation, for generated clients.
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    /// The action for the audit file; none for what only reads.
    pub(crate) action: Option<&'static str>,
    /// The type of the query.
    pub(crate) query: Option<SchemaOf>,
    /// The type of the JSON body.
    pub(crate) body: Option<SchemaOf>,
    /// The type of the JSON answer.
    pub(crate) answer: Option<SchemaOf>,
    /// What else is answered, by media type.
    pub(crate) media: &'static [&'static str],
    /// The status of success.
    pub(crate) status: u16,
    pub(crate) handler: Handler,
}

impl Endpoint {
    /// What reads.
    pub(crate) const fn get(
        path: &'static str,
        name: &'static str,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            method: "GET",
            path,
            name,
            summary,
            access: Access::Read,
            action: None,
            query: None,
            body: None,
            answer: None,
            media: &[],
            status: 200,
            handler,
        }
    }

    /// What compiles, and so changes nothing.
    pub(crate) const fn compile(
        path: &'static str,
        name: &'static str,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self { method: "POST", ..Self::get(path, name, summary, handler) }
    }

    /// What changes something.
    pub(crate) const fn change(
        method: &'static str,
        path: &'static str,
        name: &'static str,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self { method, access: Access::Submit, action: Some(name), ..Self::get(path, name, summary, handler) }
    }

    pub(crate) const fn query(self, query: SchemaOf) -> Self {
        Self { query: Some(query), ..self }
    }

    pub(crate) const fn body(self, body: SchemaOf) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(crate) const fn answer(self, answer: SchemaOf) -> Self {
        Self { answer: Some(answer), ..self }
    }

    pub(crate) const fn media(self, media: &'static [&'static str]) -> Self {
        Self { media, ..self }
    }

    pub(crate) const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    fn filter(&self) -> MethodFilter {
        match self.method {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        }
    }
}

/// The routes of endpoints, below their base.
pub(crate) fn router(server: &Arc<Server>, base: &str, endpoints: &[Endpoint]) -> Router {
    let mut routes: BTreeMap<String, MethodRouter> = BTreeMap::new();
    for &endpoint in endpoints {
        let server = Arc::clone(server);
        let handler = move |request: Request| {
            let server = Arc::clone(&server);
            async move { answer(server, endpoint, request).await }
        };
        let path = format!("{base}{}", endpoint.path);
        let known = routes.remove(&path).unwrap_or_default();
        routes.insert(path, known.merge(on(endpoint.filter(), handler)));
    }
    let wrong_method = || async {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not have that method").into_response()
    };
    routes
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| router.route(&path, methods.fallback(wrong_method)))
}

async fn answer(server: Arc<Server>, endpoint: Endpoint, mut request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let Some(peer) = peer else { return Problem::of_host("the connection is not known").into_response() };
    let path = match request.extract_parts::<RawPathParams>().await {
        Ok(parts) => parts.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        Err(_) => return Problem::bad_request("the path is not UTF-8").into_response(),
    };
    let (mut parts, body) = request.into_parts();
    let actor = match server.actor(peer, &parts.headers) {
        Ok(actor) => actor,
        Err(problem) => {
            if let Some(action) = endpoint.action {
                let status = StatusCode::from_u16(problem.status).unwrap_or_default();
                // Guesses must not fill the disk.
                if server.limits.request("refused").is_ok() {
                    server.note("", peer, action, parts.uri.path(), status);
                }
            }
            let mut response = problem.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                response
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
            }
            return response;
        }
    };
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let arrival = Arrival { peer, path, uri: parts.uri, headers: parts.headers, body, upgrade };
    let call = Call::new(Arc::clone(&server), actor, arrival);
    audited(endpoint, call).await.unwrap_or_else(Problem::into_response)
}

/// Checks who calls, and writes the line of the audit file.
async fn audited(endpoint: Endpoint, call: Call) -> Answer {
    let server = Arc::clone(&call.server);
    let (actor, peer, notes) = (call.actor.clone(), call.peer, Arc::clone(&call.notes));
    server.limits.request(&actor.user)?;
    let Some(action) = endpoint.action else {
        permit(endpoint, &call)?;
        return (endpoint.handler)(call).await;
    };
    let about = call.path.values().next().cloned().unwrap_or_default();
    server.audit.reserve()?;
    let result = match permit(endpoint, &call) {
        // An action is carried out and written down, also when the caller has left.
        Ok(()) => match tokio::spawn((endpoint.handler)(call)).await {
            Ok(result) => result,
            Err(_) => Err(Problem::of_host("the action failed inside of the server")),
        },
        Err(problem) => Err(problem),
    };
    let Notes { about: said, started, key } = notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let line = Line {
        user: actor.user,
        from: peer.to_string(),
        action: action.to_owned(),
        about: if said.is_empty() { about } else { said },
        status: result.as_ref().map_or_else(|problem| problem.status, |response| response.status().as_u16()),
        started,
        key,
        ..Line::default()
    };
    server.owners.note(&line);
    if let Err(error) = server.audit.write(&line) {
        eprintln!("jobc serve: {}", error.message());
    }
    result
}

/// Whether the caller may do that.
fn permit(endpoint: Endpoint, call: &Call) -> Result<(), Problem> {
    let is_safe = endpoint.method == "GET";
    // Browsers send cookies, and what a proxy knows them by, with the requests of any page.
    let is_by_itself = matches!(call.actor.credential, Credential::Cookie(_) | Credential::Proxy);
    if !is_safe && is_by_itself && !call.headers.contains_key(OWN_HEADER) {
        return Err(Problem::forbidden("the header `X-Jobc-Request: 1` is missing"));
    }
    if call.actor.access < endpoint.access {
        return Err(Problem::forbidden("this token may look and not change anything")
            .hint("ask for one of `jobc serve --share submit`"));
    }
    Ok(())
}
