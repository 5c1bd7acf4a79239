//! WebSockets, for terminals and language servers.

use axum::body::Body;
use axum::response::Response;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::actor::Credential;
use crate::call::Call;
use crate::problem::Problem;

/// An open WebSocket.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The largest message of a caller.
const MAX_MESSAGE: usize = 4 << 20;

/// Accepts a WebSocket, which `work` gets once it is open.
///
/// # Errors
/// The request is not for one, or a page of another site may have sent it.
pub(crate) fn accept<W, F>(call: &mut Call, work: W) -> Result<Response, Problem>
where
    W: FnOnce(Socket) -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let has = |name: HeaderName, wanted: &str| {
        let values = call.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let wrong = || Problem::new(StatusCode::UPGRADE_REQUIRED, "this path is a WebSocket, version 13");
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") || !has(SEC_WEBSOCKET_VERSION, "13") {
        return Err(wrong());
    }
    // Any page may open one, and the browser sends the cookie with it: its origin was compared before, if it has one.
    let is_by_itself = matches!(call.actor.credential, Credential::Cookie(_) | Credential::Proxy);
    if is_by_itself && !call.headers.contains_key(ORIGIN) {
        return Err(Problem::forbidden("the `Origin` header is missing"));
    }
    let key = call.headers.get(SEC_WEBSOCKET_KEY).ok_or_else(wrong)?;
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| wrong())?;
    let upgrade = call.upgrade.take().ok_or_else(wrong)?;
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        work(socket).await;
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.version_mut() = Version::HTTP_11;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    Ok(response)
}

/// Closes a WebSocket with the reason.
pub(crate) async fn refuse(mut socket: Socket, why: &str) {
    let reason =
        CloseFrame { code: CloseCode::Error, reason: why.chars().take(100).collect::<String>().into() };
    let _ = socket.close(Some(reason)).await;
}
