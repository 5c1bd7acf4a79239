//! The part of SPDY/3.1 that `portforward` needs: streams with headers, data with half-close, resets and pings.
//!
//! The header blocks are one zlib stream with a dictionary. Ours are stored without compression, and received ones are
//! not read: the server's replies have no headers.

/// A zlib header that announces the dictionary of SPDY/3 by its Adler-32 (section 2.6.10.1).
const ZLIB_HEAD: [u8; 6] = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2];
/// An empty stored block, after which a decompressor has everything that came before.
const ZLIB_FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];
const FIN: u8 = 1;
const CONTROL: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
/// The status of a reset by the side that no longer wants the stream.
const CANCEL: u32 = 5;

/// A frame that was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The other side has accepted a stream.
    Reply {
        stream: u32,
        is_last: bool,
    },
    Data {
        stream: u32,
        is_last: bool,
        bytes: Vec<u8>,
    },
    Reset {
        stream: u32,
    },
    Ping {
        id: u32,
    },
    /// No new streams.
    GoAway,
    /// Something that needs no answer.
    Other,
}

/// Makes the frames of a client.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    has_begun: bool,
}

impl Encoder {
    /// Opens a stream.
    pub(crate) fn open(&mut self, stream: u32, headers: &[(&str, &str)]) -> Vec<u8> {
        let number = |length: usize| u32::try_from(length).unwrap_or_default().to_be_bytes();
        let mut text = number(headers.len()).to_vec();
        for word in headers.iter().flat_map(|(name, value)| [name, value]) {
            text.extend_from_slice(&number(word.len()));
            text.extend_from_slice(word.as_bytes());
        }
        let mut body = stream.to_be_bytes().to_vec();
        // No associated stream, the highest priority, no slot.
        body.extend_from_slice(&[0; 6]);
        if !std::mem::replace(&mut self.has_begun, true) {
            body.extend_from_slice(&ZLIB_HEAD);
        }
        let length = u16::try_from(text.len()).unwrap_or_default();
        body.push(0);
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(&(!length).to_le_bytes());
        body.extend_from_slice(&text);
        body.extend_from_slice(&ZLIB_FLUSH);
        control(SYN_STREAM, &body)
    }
}

/// Data of a stream; `is_last` closes this side's direction.
pub(crate) fn data(stream: u32, is_last: bool, bytes: &[u8]) -> Vec<u8> {
    let mut frame = stream.to_be_bytes().to_vec();
    frame.push(if is_last { FIN } else { 0 });
    frame.extend_from_slice(&length(bytes));
    frame.extend_from_slice(bytes);
    frame
}

/// Ends a stream in both directions.
pub(crate) fn reset(stream: u32) -> Vec<u8> {
    control(RST_STREAM, &[stream.to_be_bytes(), CANCEL.to_be_bytes()].concat())
}

/// Answers a ping.
pub(crate) fn ping(id: u32) -> Vec<u8> {
    control(PING, &id.to_be_bytes())
}

fn control(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = [CONTROL.to_be_bytes(), kind.to_be_bytes()].concat();
    frame.push(0);
    frame.extend_from_slice(&length(body));
    frame.extend_from_slice(body);
    frame
}

/// The 24 bits of a length.
fn length(bytes: &[u8]) -> [u8; 3] {
    let [_, high, middle, low] = u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes();
    [high, middle, low]
}

/// Takes the first frame of the received bytes; `None` if it is not complete.
///
/// # Errors
///
/// The bytes are not SPDY/3.
pub(crate) fn decode(received: &mut Vec<u8>) -> Result<Option<Frame>, String> {
    let Some(head) = received.first_chunk::<8>().copied() else { return Ok(None) };
    let end = 8 + usize::from(head[5]) * 0x1_0000 + usize::from(head[6]) * 0x100 + usize::from(head[7]);
    if received.len() < end {
        return Ok(None);
    }
    let body: Vec<u8> = received.drain(..end).skip(8).collect();
    let is_last = head[4] & FIN != 0;
    let word = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if word & 0x8000_0000 == 0 {
        return Ok(Some(Frame::Data { stream: word, is_last, bytes: body }));
    }
    if word >> 16 != u32::from(CONTROL) {
        return Err("the server does not speak SPDY/3".to_owned());
    }
    let first = body.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff);
    Ok(Some(match u16::try_from(word & 0xffff).unwrap_or_default() {
        SYN_REPLY => Frame::Reply { stream: first, is_last },
        RST_STREAM => Frame::Reset { stream: first },
        PING => Frame::Ping { id: first },
        GOAWAY => Frame::GoAway,
        _ => Frame::Other,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_headers_are_one_zlib_stream() {
        let mut encoder = Encoder::default();
        let first = encoder.open(1, &[("port", "80")]);
        let head: &[u8] = &[0x80, 3, 0, 1, 0, 0, 0, 44, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(&first[..18], head);
        assert_eq!(&first[18..24], ZLIB_HEAD);
        assert_eq!(&first[24..29], &[0, 18, 0, 0xed, 0xff]);
        assert_eq!(&first[29..47], b"\0\0\0\x01\0\0\0\x04port\0\0\0\x0280");
        assert_eq!(&first[47..], ZLIB_FLUSH);
        assert_eq!(usize::from(first[7]), first.len() - 8);
        let second = encoder.open(3, &[("port", "80")]);
        assert_eq!(&second[18..21], &[0, 18, 0]);
    }

    #[test]
    fn frames_come_back_in_any_pieces() {
        let mut sent = data(3, true, b"bytes");
        sent.extend(control(SYN_REPLY, &[0, 0, 0, 3]));
        sent.extend(reset(5));
        sent.extend(ping(2));
        sent.extend(control(GOAWAY, &[0; 8]));
        sent.extend(control(9, &[0; 8]));
        let (mut received, mut frames) = (Vec::new(), Vec::new());
        for byte in sent {
            received.push(byte);
            frames.extend(decode(&mut received).unwrap());
        }
        assert_eq!(
            frames,
            [
                Frame::Data { stream: 3, is_last: true, bytes: b"bytes".to_vec() },
                Frame::Reply { stream: 3, is_last: false },
                Frame::Reset { stream: 5 },
                Frame::Ping { id: 2 },
                Frame::GoAway,
                Frame::Other,
            ]
        );
        assert!(decode(&mut vec![0x80, 2, 0, 1, 0, 0, 0, 0]).is_err());
    }
}
