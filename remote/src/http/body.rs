//! The body of an HTTP answer, for connections that are polled (RFC 9112, sections 6 and 7).

use super::Answer;

/// The maximum size of a chunk's size line, or of a line after the last chunk.
const MAX_LINE: usize = 8 << 10;

/// Extracts a body from the received bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyDecoder {
    /// This many bytes are still to come.
    Sized(u64),
    /// It ends with the connection.
    Open,
    /// It comes in chunks.
    Chunked(Chunk),
}

/// Where in a chunked body a decoder is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// Before the size of a chunk; after the first one a line end comes before it.
    Size { is_first: bool },
    /// This many bytes of the chunk are still to come.
    Data(u64),
    /// After the last chunk.
    Trailer,
    /// After the body.
    End,
}

impl BodyDecoder {
    /// The decoder that the head of an answer asks for.
    pub(crate) fn of(answer: &Answer) -> Self {
        let is_chunked = answer
            .header("transfer-encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().trim_end().ends_with("chunked"));
        if is_chunked {
            return Self::Chunked(Chunk::Size { is_first: true });
        }
        answer.header("content-length").and_then(|length| length.parse().ok()).map_or(Self::Open, Self::Sized)
    }

    /// Moves the bytes of the body from `received` to `body`.
    ///
    /// # Errors
    ///
    /// It is not what the specification says.
    pub(crate) fn decode(&mut self, received: &mut Vec<u8>, body: &mut Vec<u8>) -> Result<(), String> {
        let mut at = 0;
        while at < received.len() {
            let rest = &received[at..];
            at += match self {
                Self::Open => {
                    body.extend_from_slice(rest);
                    rest.len()
                }
                Self::Sized(0) | Self::Chunked(Chunk::End) => rest.len(),
                Self::Sized(left) => take(rest, left, body),
                Self::Chunked(Chunk::Data(left)) => {
                    let count = take(rest, left, body);
                    if *left == 0 {
                        *self = Self::Chunked(Chunk::Size { is_first: false });
                    }
                    count
                }
                Self::Chunked(chunk @ Chunk::Size { is_first: false }) => {
                    let Some(end) = line_end(rest)? else { break };
                    if end > 2 {
                        return Err("a chunk is longer than the server said".to_owned());
                    }
                    *chunk = Chunk::Size { is_first: true };
                    end
                }
                Self::Chunked(chunk @ Chunk::Size { .. }) => {
                    let Some(end) = line_end(rest)? else { break };
                    *chunk = match chunk_size(&rest[..end])? {
                        0 => Chunk::Trailer,
                        size => Chunk::Data(size),
                    };
                    end
                }
                Self::Chunked(chunk @ Chunk::Trailer) => {
                    let Some(end) = line_end(rest)? else { break };
                    if rest[..end].trim_ascii().is_empty() {
                        *chunk = Chunk::End;
                    }
                    end
                }
            };
        }
        received.drain(..at);
        Ok(())
    }

    /// Whether all of it was taken, if the connection has ended or not.
    pub(crate) fn is_complete(&self, has_ended: bool) -> bool {
        match self {
            Self::Open => has_ended,
            Self::Sized(left) => *left == 0,
            Self::Chunked(chunk) => *chunk == Chunk::End,
        }
    }
}

/// Takes up to `left` bytes; returns how many.
fn take(rest: &[u8], left: &mut u64, body: &mut Vec<u8>) -> usize {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
    body.extend_from_slice(&rest[..count]);
    *left -= count as u64;
    count
}

/// The length of the first line with its end; `None` if the end has not arrived.
fn line_end(bytes: &[u8]) -> Result<Option<usize>, String> {
    let end = bytes.iter().take(MAX_LINE).position(|byte| *byte == b'\n');
    if end.is_none() && bytes.len() >= MAX_LINE {
        return Err("the line before a chunk is too long".to_owned());
    }
    Ok(end.map(|end| end + 1))
}

/// The number in the line before a chunk; extensions after `;` are ignored.
fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let text = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = std::str::from_utf8(text).unwrap_or_default();
    let is_hexadecimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = if is_hexadecimal { u64::from_str_radix(text, 16).ok() } else { None };
    size.ok_or_else(|| format!("`{}` is not the size of a chunk", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(headers: &[(&str, &str)]) -> BodyDecoder {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        BodyDecoder::of(&Answer { code: 200, headers })
    }

    fn chunked() -> BodyDecoder {
        decoder(&[("transfer-encoding", "Chunked")])
    }

    /// The body in pieces of every length: the result, and whether it is complete before the connection ends.
    fn check(new: impl Fn() -> BodyDecoder, bytes: &[u8], expected: (&str, bool)) {
        for length in 1..=bytes.len() {
            let (mut decoder, mut received, mut body) = (new(), Vec::new(), Vec::new());
            for piece in bytes.chunks(length) {
                received.extend_from_slice(piece);
                decoder.decode(&mut received, &mut body).unwrap();
            }
            let found = (String::from_utf8(body).unwrap(), decoder.is_complete(false));
            assert_eq!((found.0.as_str(), found.1), expected, "in pieces of {length} bytes");
        }
    }

    #[test]
    fn a_body_is_taken_in_pieces_of_any_length() {
        check(
            chunked,
            b"4\r\nab\r\n\r\n1A;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
            ("ab\r\nabcdefghijklmnopqrstuvwxyz", true),
        );
        check(chunked, b"1\na\n0\nX-End: 1\n\nrest", ("a", true));
        check(chunked, b"5\r\nabc", ("abc", false));
        check(chunked, b"3\r\nabc\r\n", ("abc", false));
        check(|| decoder(&[("content-length", "3")]), b"abcd", ("abc", true));
        check(|| decoder(&[("content-length", "9")]), b"abcd", ("abcd", false));
        check(|| decoder(&[]), b"abcd", ("abcd", false));
        assert!(decoder(&[]).is_complete(true));
    }

    #[test]
    fn invalid_chunks_are_an_error() {
        for bytes in [
            &b"x\r\n"[..],
            b"-1\r\n",
            b"\r\n",
            b"+1\r\n",
            b"1\r\nab\r\n",
            b"fffffffffffffffff\r\n",
            &[b'1'; MAX_LINE],
        ] {
            let (mut decoder, mut received) = (chunked(), bytes.to_vec());
            assert!(decoder.decode(&mut received, &mut Vec::new()).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
