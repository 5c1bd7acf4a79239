//! Errors as problem documents (RFC 9457).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use jobc_process::Finished;
use jobc_sys::error::{Error, Kind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What is wrong, where, and what to do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// What kind of problem it is: `about:blank`, since the status says it.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// The status.
    #[schemars(range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// What is wrong.
    pub(crate) detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
    /// The findings about the job file, as `jobc check --format json` prints them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Map<String, Value>>,
    /// After how many seconds another try may succeed.
    #[serde(skip)]
    retry_after: Option<u32>,
}

/// An error as a problem document.
#[derive(Clone, Debug)]
pub(crate) struct Problem(Box<Document>);

impl std::ops::Deref for Problem {
    type Target = Document;

    fn deref(&self) -> &Document {
        &self.0
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Document {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            hints: vec![],
            diagnostics: vec![],
            retry_after: None,
        }))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// What the host refuses.
    pub(crate) fn of_host(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Too much at a time.
    pub(crate) fn too_many(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, detail);
        problem.0.retry_after = Some(1);
        problem
    }

    /// The errors of a command that has failed: the findings as JSON, if it printed some, and lines of text.
    pub(crate) fn of_command(finished: &Finished) -> Self {
        let (_, text) = split(&finished.stderr);
        let mut errors = vec![];
        let mut hints = vec![];
        for line in text.lines() {
            if let Some(hint) = line.trim_start().strip_prefix("= help: ") {
                hints.push(hint.to_owned());
            } else if let Some(error) = line.strip_prefix("error: ") {
                errors.push(error.to_owned());
            }
        }
        let mut diagnostics = diagnostics(&finished.stderr);
        diagnostics.extend(self::diagnostics(&finished.stdout));
        let first = diagnostics.iter().find(|finding| finding["severity"] == "error");
        let finding = first.and_then(|finding| finding["message"].as_str()).map(str::to_owned);
        let detail = errors.into_iter().next().or(finding).unwrap_or_else(|| {
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            last.map_or_else(|| "the command failed without a message".to_owned(), str::to_owned)
        });
        let is_unknown = ["no job", "unknown", "no such", "does not exist", "not found"];
        let status = match finished.code {
            _ if !diagnostics.is_empty() => StatusCode::UNPROCESSABLE_ENTITY,
            Some(2) if is_unknown.iter().any(|words| detail.contains(words)) => StatusCode::NOT_FOUND,
            Some(2) => StatusCode::UNPROCESSABLE_ENTITY,
            Some(1) => StatusCode::CONFLICT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let mut problem = Self::new(status, detail);
        (problem.0.hints, problem.0.diagnostics) = (hints, diagnostics);
        problem
    }
}

/// The findings in what a command printed.
pub(crate) fn diagnostics(text: &str) -> Vec<Map<String, Value>> {
    let (documents, _) = split(text);
    let lists = documents.into_iter().filter_map(|document| document.get("diagnostics")?.as_array().cloned());
    let objects = lists.flatten().filter_map(|finding| match finding {
        Value::Object(finding) => Some(finding),
        _ => None,
    });
    objects.collect()
}

/// The JSON documents at the beginning of a text, and the rest.
fn split(text: &str) -> (Vec<Value>, &str) {
    let mut documents = vec![];
    let mut rest = text;
    while rest.trim_start().starts_with(['{', '[']) {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(document)) => documents.push(document),
            _ => break,
        }
        rest = &rest[stream.byte_offset()..];
    }
    (documents, rest)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match error.kind {
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Config | Kind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::State => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut problem = Self::new(status, error.what.clone());
        problem.0.hints.clone_from(&error.hints);
        problem
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::of_host(format!("the server cannot do that: {error}"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let body = serde_json::to_vec(&*self.0).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32, stdout: &str, stderr: &str) -> Problem {
        Problem::of_command(&Finished {
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        })
    }

    #[test]
    fn a_failed_command_is_a_problem_with_its_hints() {
        let problem = failed(2, "", "error: no job `x`\n = help: `jobc ps` lists jobs\n");
        assert_eq!((problem.status, problem.detail.as_str()), (404, "no job `x`"));
        assert_eq!(problem.hints, ["`jobc ps` lists jobs"]);
        assert_eq!(failed(3, "", "error: the cluster does not answer\n").status, 502);
        assert_eq!(failed(1, "", "jobc: stopped\n").detail, "jobc: stopped");
        assert_eq!(failed(137, "", "").detail, "the command failed without a message");
    }

    #[test]
    fn findings_are_passed_on() {
        let text =
            "{\"diagnostics\": [{\"severity\": \"error\", \"message\": \"unknown key `x`\"}]}\njobc: more\n";
        for problem in [failed(1, "", text), failed(1, text, "")] {
            assert_eq!((problem.status, problem.detail.as_str()), (422, "unknown key `x`"));
            assert_eq!(problem.diagnostics.len(), 1);
        }
    }
}
