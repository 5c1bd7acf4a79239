//! The head of an HTTP answer, for connections that are polled (RFC 9112, sections 4 and 5).

/// The maximum size of the head of a response.
const MAX_HEAD: usize = 64 << 10;

/// The head of an answer.
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
}

/// Takes the head of the response from the received bytes; `None` if it is not complete.
///
/// # Errors
///
/// The response is not HTTP.
pub(crate) fn take_answer(received: &mut Vec<u8>) -> Result<Option<Answer>, String> {
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

    #[test]
    fn the_head_is_taken_when_it_is_complete() {
        let mut received = b"HTTP/1.1 200 OK\r\nContent-Type:  text/plain\r\n\r\nrest".to_vec();
        assert_eq!(take_answer(&mut received[..40].to_vec()), Ok(None));
        let answer = take_answer(&mut received).unwrap().unwrap();
        assert_eq!((answer.code, answer.header("content-type")), (200, Some("text/plain")));
        assert_eq!(received, b"rest");
    }

    #[test]
    fn invalid_http_is_an_error() {
        assert!(take_answer(&mut b"SSH-2.0\r\n\r\n".to_vec()).is_err());
        assert!(take_answer(&mut vec![b'x'; MAX_HEAD + 1]).is_err());
    }
}
