//! Lists in pages, and watches that go on where they broke off.

use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::time::Duration;

use jobc_registry::http::Backoff;
use jobc_schema::percent::encode_segment;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::Client;
use super::outage::{Outage, may_pass};
use super::status::{ApiError, Status};

/// Objects of a page.
const PAGE: usize = 500;
/// The server ends a watch after this time.
const WATCH_SECONDS: u64 = 290;
/// A watch on which nothing arrives for this long is dead: bookmarks come every minute.
const WATCH_IDLE: Duration = Duration::from_mins(6);

/// A list, or a page of it.
#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct WatchHead {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct WatchBody<T> {
    object: T,
}

#[derive(Deserialize)]
struct ObjectVersion {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    resource_version: String,
}

/// The report of a watch.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// All objects: at the start, and after the server has forgotten where the watch was. What is not among them does
    /// not exist.
    All(Vec<T>),
    /// An object was created or changed.
    Changed(T),
    /// An object was deleted.
    Deleted(T),
}

/// Reads a whole list, page by page. `query` has the selectors, without `?`.
///
/// A list that changes so fast that its pages expire is read again from its start.
pub(crate) fn list<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
) -> Result<Vec<T>, ApiError> {
    Ok(list_with_version(client, path, query)?.0)
}

fn list_with_version<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
) -> Result<(Vec<T>, String), ApiError> {
    let (mut items, mut next): (Vec<T>, Option<String>) = (Vec::new(), None);
    let mut restarts = 0;
    loop {
        let part =
            next.as_ref().map(|token| format!("&continue={}", encode_segment(token))).unwrap_or_default();
        let page: List<T> = match client.get(&format!("{path}?limit={PAGE}&{query}{part}")) {
            Err(error) if error.is(410) && restarts < 3 => {
                restarts += 1;
                items.clear();
                next = None;
                continue;
            }
            page => page?,
        };
        items.extend(page.items);
        next = page.metadata.next.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok((items, page.metadata.resource_version));
        }
    }
}

/// Follows the objects of a list until `on_change` breaks off. It survives cut connections and restarts of the server;
/// after 410 it lists again.
pub(crate) fn watch<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
    on_change: &mut dyn FnMut(Change<T>) -> ControlFlow<()>,
) -> Result<(), ApiError> {
    let (mut backoff, mut outage, mut has_answered) = (Backoff::default(), Outage::default(), false);
    loop {
        let (items, mut version) = match list_with_version(client, path, query) {
            Err(error) if has_answered && may_pass(&error) && outage.wait(client, &error.why()) => continue,
            listed => listed?,
        };
        has_answered = true;
        if on_change(Change::All(items)).is_break() {
            return Ok(());
        }
        loop {
            let followed = follow(client, path, query, &mut version, on_change);
            if followed.is_ok() {
                outage.end();
            }
            match followed {
                Ok(End::Done) => return Ok(()),
                Ok(End::Cut { progressed: true }) => backoff.progressed(),
                Ok(End::Cut { progressed: false }) => match backoff.failed(None) {
                    Some(delay) => std::thread::sleep(delay),
                    None => {
                        return Err(ApiError::Connection("the cluster ends every watch at once".to_owned()));
                    }
                },
                Err(error) if error.is(410) => break,
                Err(error) if may_pass(&error) && outage.wait(client, &error.why()) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// How a connection ended.
enum End {
    Done,
    Cut { progressed: bool },
}

fn follow<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
    version: &mut String,
    on_change: &mut dyn FnMut(Change<T>) -> ControlFlow<()>,
) -> Result<End, ApiError> {
    let since = encode_segment(version);
    let query = format!(
        "watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={since}&{query}"
    );
    let mut reader = BufReader::new(client.stream(&format!("{path}?{query}"), WATCH_IDLE)?);
    let (mut line, mut progressed) = (Vec::new(), false);
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(read) if read > 0 && line.ends_with(b"\n") => {}
            // The server's time limit, a proxy's, or a cut in the middle of a line.
            _ => return Ok(End::Cut { progressed }),
        }
        let Ok(head) = serde_json::from_slice::<WatchHead>(&line) else { return Ok(End::Cut { progressed }) };
        if head.kind == "ERROR" {
            let body: WatchBody<Status> = parse(&line)?;
            return Err(ApiError::Status(Box::new(body.object)));
        }
        let body: WatchBody<ObjectVersion> = parse(&line)?;
        *version = body.object.metadata.resource_version;
        progressed = true;
        let change = match head.kind.as_str() {
            "ADDED" | "MODIFIED" => Change::Changed(parse::<WatchBody<T>>(&line)?.object),
            "DELETED" => Change::Deleted(parse::<WatchBody<T>>(&line)?.object),
            _ => continue,
        };
        if on_change(change).is_break() {
            return Ok(End::Done);
        }
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(line)
        .map_err(|error| ApiError::Connection(format!("the cluster sent a broken line of a watch: {error}")))
}
