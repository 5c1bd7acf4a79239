//! The opening of a WebSocket (RFC 6455, section 4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::sha1::sha1;

/// What every server appends to the key (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The head of an answer may have no more than this.
const MAX_HEAD: usize = 64 << 10;

/// The answer of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Answer {
    /// The first header of a name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The protocol that was chosen among those that were offered.
    ///
    /// # Errors
    ///
    /// The server did not switch to WebSocket, or not with this client.
    pub(crate) fn protocol(&self, key: &str, offered: &[&str]) -> Result<String, String> {
        if self.code != 101 {
            return Err(format!("the server answered {}", self.code));
        }
        let accepted = STANDARD.encode(sha1(format!("{key}{GUID}").as_bytes()));
        if self.header("sec-websocket-accept") != Some(accepted.as_str()) {
            return Err("the answer to the WebSocket handshake is not for this client".to_owned());
        }
        let chosen = self.header("sec-websocket-protocol").unwrap_or_default();
        if offered.contains(&chosen) {
            Ok(chosen.to_owned())
        } else {
            Err(format!("the server chose the protocol `{chosen}`, which was not offered"))
        }
    }
}

/// A key for one handshake, from random bytes.
pub(crate) fn key(random: [u8; 16]) -> String {
    STANDARD.encode(random)
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

/// Takes the head of the answer from what was received; none if it is not complete.
///
/// # Errors
///
/// It is not HTTP.
pub(crate) fn answer(received: &mut Vec<u8>) -> Result<Option<Answer>, String> {
    let Some(end) = received.windows(4).position(|part| part == b"\r\n\r\n") else {
        return if received.len() > MAX_HEAD { Err("the answer is too long".to_owned()) } else { Ok(None) };
    };
    let head: Vec<u8> = received.drain(..end + 4).collect();
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let code = code.ok_or_else(|| format!("the answer is not HTTP: `{}`", status.escape_debug()))?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    Ok(Some(Answer { code, headers: lines.filter_map(header).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const OFFERED: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io"];

    fn read(text: &str) -> Answer {
        answer(&mut text.as_bytes().to_vec()).unwrap().unwrap()
    }

    #[test]
    fn the_example_of_the_specification() {
        // Section 1.3.
        let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\nrest";
        let mut received = text.as_bytes().to_vec();
        assert_eq!(answer(&mut received[..40].to_vec()), Ok(None));
        let answer = answer(&mut received).unwrap().unwrap();
        assert_eq!(answer.protocol(KEY, OFFERED).as_deref(), Ok("v4.channel.k8s.io"));
        assert_eq!(received, b"rest");
        assert!(answer.protocol("other", OFFERED).unwrap_err().contains("not for this client"));
        assert!(answer.protocol(KEY, &OFFERED[..1]).unwrap_err().contains("not offered"));
    }

    #[test]
    fn other_answers_are_not_a_websocket() {
        assert_eq!(
            read("HTTP/1.1 403 Forbidden\r\n\r\n").protocol(KEY, OFFERED),
            Err("the server answered 403".to_owned())
        );
        assert!(answer(&mut b"SSH-2.0\r\n\r\n".to_vec()).is_err());
        assert!(answer(&mut vec![b'x'; MAX_HEAD + 1]).is_err());
    }

    #[test]
    fn a_header_has_one_line() {
        let text = request("/p", "h:1", KEY, OFFERED, &[("Authorization", "Bearer a\r\nX: y".to_owned())]);
        assert!(text.starts_with("GET /p HTTP/1.1\r\nHost: h:1\r\n") && text.ends_with("\r\n\r\n"));
        assert!(text.contains("Authorization: Bearer aX: y\r\n"), "{text}");
        assert!(text.contains("Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n"));
    }
}
