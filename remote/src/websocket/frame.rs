//! Frames of the WebSocket protocol (RFC 6455, section 5).

/// The most that one frame may carry.
const MAX_PAYLOAD: u64 = 16 << 20;

/// The bit of the second byte that says that a mask follows.
const MASKED: u8 = 0x80;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn of(number: u8) -> Option<Self> {
        let all = [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong];
        all.into_iter().find(|opcode| opcode.number() == number)
    }

    fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// A frame of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) opcode: Opcode,
    /// Whether the message ends with it.
    pub(crate) is_last: bool,
    pub(crate) payload: Vec<u8>,
}

/// Appends a whole message of a client, which is masked.
pub(crate) fn encode(opcode: Opcode, payload: &[&[u8]], mask: [u8; 4], out: &mut Vec<u8>) {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    out.push(0x80 | opcode.number());
    match length {
        0..=125 => out.push(MASKED + u8::try_from(length).unwrap_or_default()),
        126..=0xffff => {
            out.push(MASKED + 126);
            out.extend_from_slice(&u16::try_from(length).unwrap_or_default().to_be_bytes());
        }
        _ => {
            out.push(MASKED + 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let bytes = payload.iter().flat_map(|part| part.iter());
    out.extend(bytes.zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// Takes the first frame of what was received; none if it is not complete.
///
/// # Errors
///
/// What breaks the protocol.
pub(crate) fn decode(received: &mut Vec<u8>) -> Result<Option<Frame>, String> {
    let [first, second, ..] = received[..] else { return Ok(None) };
    let wrong = |why: &str| Err(format!("the server breaks the WebSocket protocol: {why}"));
    if first & 0x70 != 0 {
        return wrong("it uses an extension that was not negotiated");
    }
    let Some(opcode) = Opcode::of(first & 0xf) else { return wrong("unknown opcode") };
    if second & 0x80 != 0 {
        return wrong("a masked frame");
    }
    let is_last = first & 0x80 != 0;
    let (head, length) = match second & 0x7f {
        126 => match received.get(2..4) {
            Some(bytes) => (4, u64::from(u16::from_be_bytes([bytes[0], bytes[1]]))),
            None => return Ok(None),
        },
        127 => match received.get(2..10) {
            Some(bytes) => (10, bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
            None => return Ok(None),
        },
        length => (2, u64::from(length)),
    };
    if opcode.is_control() && (length > 125 || !is_last) {
        return wrong("a control frame that is too long or divided");
    }
    if length > MAX_PAYLOAD {
        return wrong("a frame that is too large");
    }
    let end = head + usize::try_from(length).unwrap_or(usize::MAX);
    if received.len() < end {
        return Ok(None);
    }
    let payload = received[head..end].to_vec();
    received.drain(..end);
    Ok(Some(Frame { opcode, is_last, payload }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the mask, as a server does.
    fn unmasked(mut bytes: Vec<u8>) -> Vec<u8> {
        let extra = match bytes[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask: Vec<u8> = bytes.drain(2 + extra..6 + extra).collect();
        bytes[1] &= 0x7f;
        for (index, byte) in bytes[2 + extra..].iter_mut().enumerate() {
            *byte ^= mask[index % 4];
        }
        bytes
    }

    #[test]
    fn the_example_of_the_specification() {
        // Section 5.7: a single-frame masked text message, "Hello".
        let mut out = Vec::new();
        encode(Opcode::Text, &[b"Hel", b"lo"], [0x37, 0xfa, 0x21, 0x3d], &mut out);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }

    #[test]
    fn frames_of_every_length_come_back() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 100_000] {
            let payload: Vec<u8> = (0..length).map(|index: u32| index.to_le_bytes()[0]).collect();
            let mut out = Vec::new();
            encode(Opcode::Binary, &[&payload], [1, 2, 3, 4], &mut out);
            let mut received = unmasked(out);
            received.extend_from_slice(&[0x89, 0]);
            for end in [0, 1, 2, 3, 9, received.len() - 3] {
                let mut part = received[..end.min(received.len() - 3)].to_vec();
                assert_eq!(decode(&mut part), Ok(None), "{length} {end}");
            }
            let frame = decode(&mut received).unwrap().unwrap();
            assert_eq!(frame, Frame { opcode: Opcode::Binary, is_last: true, payload });
            let ping = decode(&mut received).unwrap().unwrap();
            assert_eq!(ping, Frame { opcode: Opcode::Ping, is_last: true, payload: vec![] });
            assert!(received.is_empty());
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_refused() {
        for (bytes, why) in [
            (&[0xc2, 0][..], "extension"),
            (&[0x83, 0], "unknown opcode"),
            (&[0x82, 0x81, 0, 0, 0, 0, 0], "masked"),
            (&[0x09, 0], "control"),
            (&[0x89, 126, 0, 200], "control"),
            (&[0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0], "too large"),
        ] {
            let error = decode(&mut bytes.to_vec()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
