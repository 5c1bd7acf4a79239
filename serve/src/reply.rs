//! Answers.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use crate::problem::Problem;

/// The answer to a request.
pub(crate) type Answer = Result<Response, Problem>;

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).map_err(|error| Problem::of_host(error.to_string()))?;
    Ok(typed("application/json", text))
}

/// A body of a type.
pub(crate) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer without a body.
pub(crate) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
