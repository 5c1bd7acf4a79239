//! The routes of a server: the API, OpenPAI's shapes of it, and the page.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};

use crate::endpoint;
use crate::reply::json;
use crate::routes::{self, BASE};
use crate::server::Server;
use crate::{openapi, openpai, page};

/// The routes of a server.
pub(crate) fn router(server: &Arc<Server>) -> Router {
    let page = {
        let server = Arc::clone(server);
        move |request: Request| async move { page::answer(server.options.page.as_deref(), &request) }
    };
    let login = {
        let server = Arc::clone(server);
        move |request: Request| async move { routes::begin(server, request).await }
    };
    endpoint::router(server, BASE, &routes::endpoints())
        .merge(endpoint::router(server, openpai::BASE, &openpai::endpoints()))
        .route(&format!("{BASE}/session"), post(login))
        .route(&format!("{BASE}/openapi.json"), get(|| async { json(&openapi::document()) }))
        .fallback(page)
}
