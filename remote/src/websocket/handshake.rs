//! The opening of a WebSocket (RFC 6455, section 4).

pub(crate) use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;

use crate::http::Answer;

/// The protocol that was chosen among those that were offered.
///
/// # Errors
///
/// The server did not switch to WebSocket, or not with this client.
pub(crate) fn protocol(answer: &Answer, key: &str, offered: &[&str]) -> Result<String, String> {
    if answer.code != 101 {
        return Err(format!("the server answered {}", answer.code));
    }
    if answer.header("sec-websocket-accept") != Some(&*derive_accept_key(key.as_bytes())) {
        return Err("the answer to the WebSocket handshake is not for this client".to_owned());
    }
    let chosen = answer.header("sec-websocket-protocol").unwrap_or_default();
    if offered.contains(&chosen) {
        Ok(chosen.to_owned())
    } else {
        Err(format!("the server chose the protocol `{chosen}`, which was not offered"))
    }
}

/// The request: `headers` are those of the caller, with their ends of lines left out.
pub(crate) fn request(
    path: &str,
    host: &str,
    key: &str,
    protocols: &[&str],
    headers: &[(&str, String)],
) -> String {
    let mut text = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {}\r\n",
        protocols.join(", ")
    );
    for (name, value) in headers {
        text += &format!("{name}: {}\r\n", value.replace(['\r', '\n'], ""));
    }
    text + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::take_answer;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const OFFERED: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io"];

    fn read(text: &str) -> Answer {
        take_answer(&mut text.as_bytes().to_vec()).unwrap().unwrap()
    }

    #[test]
    fn the_example_of_the_specification() {
        // Section 1.3.
        let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\nrest";
        let mut received = text.as_bytes().to_vec();
        let answer = take_answer(&mut received).unwrap().unwrap();
        assert_eq!(protocol(&answer, KEY, OFFERED).as_deref(), Ok("v4.channel.k8s.io"));
        assert_eq!(received, b"rest");
        assert!(protocol(&answer, "other", OFFERED).unwrap_err().contains("not for this client"));
        assert!(protocol(&answer, KEY, &OFFERED[..1]).unwrap_err().contains("not offered"));
    }

    #[test]
    fn other_answers_are_not_a_websocket() {
        assert_eq!(
            protocol(&read("HTTP/1.1 403 Forbidden\r\n\r\n"), KEY, OFFERED),
            Err("the server answered 403".to_owned())
        );
    }

    #[test]
    fn a_header_has_one_line() {
        let text = request("/p", "h:1", KEY, OFFERED, &[("Authorization", "Bearer a\r\nX: y".to_owned())]);
        assert!(text.starts_with("GET /p HTTP/1.1\r\nHost: h:1\r\n") && text.ends_with("\r\n\r\n"));
        assert!(text.contains("Authorization: Bearer aX: y\r\n"), "{text}");
        assert!(text.contains("Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n"));
    }
}
