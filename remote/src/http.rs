//! Code shared by every client of this crate: connections, timeouts, and a bounded number of tries.

mod answer;
mod body;

use std::time::Duration;

use jobc_registry::http::{Backoff, TlsConnector};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};

pub(crate) use answer::{Answer, take_answer};
pub(crate) use body::BodyDecoder;
pub(crate) use ureq::http::header;
pub(crate) use ureq::http::{Method, Response};
pub(crate) use ureq::{Agent, Body, Proxy};

/// To find the server and connect to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// For the start of an answer: admission webhooks may take 30 s each.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Between two pieces of what is sent, or of an answer that is not a stream.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// As many as threads that submit jobs: a new connection takes a handshake.
const MAX_IDLE_CONNECTIONS: usize = 8;
/// The wait from which on a user is told why nothing happens.
const NOTABLE_DELAY: Duration = Duration::from_secs(2);
/// The buffers of a connection.
const BUFFER_SIZE: usize = 8 << 10;
/// An answer is not read further than this.
pub(crate) const MAX_ANSWER_BYTES: u64 = 256 << 20;
/// Maximum number of bytes shown of an error response that is not JSON.
pub(crate) const MAX_ERROR_TEXT: usize = 300;

/// Gets what happens while a request is repeated, such as `the cluster answered 429; trying again in 5 s`.
pub(crate) type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// A request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// The timeout between two pieces of the answer.
    pub(crate) idle: Duration,
}

/// Why a request is repeated.
pub(crate) struct Temporary {
    /// The error, for the user.
    pub(crate) why: String,
    /// The wait that the server requests.
    pub(crate) retry_after: Option<Duration>,
}

/// A pool of connections. Redirects are not followed, and error statuses are answers.
pub(crate) fn agent(tls: TlsConnector, proxy: Option<Proxy>) -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(proxy)
        .user_agent(concat!("jobc/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_write(Some(READ_TIMEOUT))
        .max_idle_connections_per_host(MAX_IDLE_CONNECTIONS)
        // Each followed task has a connection, which holds two of each.
        .input_buffer_size(BUFFER_SIZE)
        .output_buffer_size(BUFFER_SIZE);
    let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(tls);
    Agent::with_parts(settings.build(), connector, DefaultResolver::default())
}

/// Sends a request once.
///
/// # Errors
///
/// Why there is no answer.
pub(crate) fn send(agent: &Agent, request: Request<'_>) -> Result<Response<Body>, String> {
    let Request { method, uri, headers, body, idle } = request;
    let result = if *method == Method::DELETE {
        let request =
            headers.iter().fold(agent.delete(uri), |request, (name, value)| request.header(*name, value));
        let request = request.config().timeout_per_read(Some(idle)).build();
        request.force_send_body().send(&body.unwrap_or_default()[..])
    } else {
        let request = ureq::http::Request::builder().method(method.clone()).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        if let Some(bytes) = body {
            let request = request.body(bytes).map_err(|error| error.to_string())?;
            agent.run(agent.configure_request(request).timeout_per_read(Some(idle)).build())
        } else {
            let request = request.body(()).map_err(|error| error.to_string())?;
            agent.run(agent.configure_request(request).timeout_per_read(Some(idle)).build())
        }
    };
    result.map_err(|error| {
        let text = error.to_string();
        text.strip_prefix("io: ").unwrap_or(&text).to_owned()
    })
}

/// Sends until there is an answer, a failure that is not `temporary`, or enough was tried.
pub(crate) fn repeat<T, E>(
    notice: &Notice,
    mut attempt: impl FnMut() -> Result<T, E>,
    temporary: impl Fn(&E) -> Option<Temporary>,
) -> Result<T, E> {
    let mut backoff = Backoff::default();
    loop {
        let error = match attempt() {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(Temporary { why, retry_after }) = temporary(&error) else { return Err(error) };
        let Some(delay) = backoff.failed(retry_after) else { return Err(error) };
        if delay >= NOTABLE_DELAY {
            notice(&format!("{why}; trying again in {} s", delay.as_secs()));
        }
        std::thread::sleep(delay);
    }
}

/// Whether a request can be repeated after this status.
pub(crate) fn is_temporary(code: u16) -> bool {
    matches!(code, 429 | 500 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_until_it_fails_for_good() {
        let notice: Notice = Box::new(|_| {});
        let temporary =
            |error: &u16| is_temporary(*error).then(|| Temporary { why: String::new(), retry_after: None });
        for (answers, expected, tries) in [
            (vec![Err(503), Ok(1)], Ok(1), 2),
            (vec![Err(429), Err(404), Ok(1)], Err(404), 2),
            (vec![Ok(2)], Ok(2), 1),
        ] {
            let mut left = answers.into_iter();
            let mut count = 0;
            let result = repeat(
                &notice,
                || {
                    count += 1;
                    left.next().expect("an answer for each try")
                },
                temporary,
            );
            assert_eq!((result, count), (expected, tries));
        }
    }
}
