//! Messages of D-Bus as bytes: as much of the format as calls to systemd and its answers need.
//!
//! D-Bus specification, "Message Protocol" and "Marshaling". Messages are sent in this host's byte order; the
//! server runs on it too, so a reply in the other order is rejected.

use super::marshal::{Reader, align, array, number, signature, text};

/// A value that a property of a unit can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `b`.
    Bool(bool),
    /// `i`.
    Int32(i32),
    /// `u`.
    Uint32(u32),
    /// `x`.
    Int64(i64),
    /// `t`; the largest number is systemd's `infinity`.
    Uint64(u64),
    /// `s`.
    Text(String),
    /// `as`.
    Texts(Vec<String>),
    /// `ay`.
    Bytes(Vec<u8>),
    /// `au`.
    Numbers(Vec<u32>),
    /// `a(ss)`.
    Pairs(Vec<(String, String)>),
}

/// A property of a unit and its new value.
pub type Property = (String, Value);

/// The body of a message, and its types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) signature: String,
}

/// A message that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// 1 for a call, 2 for an answer, 3 for an error, 4 for a signal.
    pub(super) kind: u8,
    pub(super) serial: u32,
    /// The call that it answers.
    pub(super) reply_serial: Option<u32>,
    pub(super) path: String,
    pub(super) interface: String,
    pub(super) member: String,
    pub(super) error: String,
    pub(super) body: Body,
}

pub(super) const METHOD_CALL: u8 = 1;
pub(super) const METHOD_RETURN: u8 = 2;
pub(super) const ERROR: u8 = 3;
pub(super) const SIGNAL: u8 = 4;

/// The maximum size of a message that is read: far above what systemd sends here.
const MAX_MESSAGE_SIZE: usize = 1024 * 1024;
/// The fixed-length part of a header, with the length of the rest.
pub(super) const FIXED_HEADER_SIZE: usize = 16;
const BYTE_ORDER: u8 = if cfg!(target_endian = "little") { b'l' } else { b'B' };

impl Value {
    fn signature(&self) -> &'static str {
        match self {
            Self::Bool(_) => "b",
            Self::Int32(_) => "i",
            Self::Uint32(_) => "u",
            Self::Int64(_) => "x",
            Self::Uint64(_) => "t",
            Self::Text(_) => "s",
            Self::Texts(_) => "as",
            Self::Bytes(_) => "ay",
            Self::Numbers(_) => "au",
            Self::Pairs(_) => "a(ss)",
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Bool(value) => number(to, &u32::from(*value).to_ne_bytes()),
            Self::Int32(value) => number(to, &value.to_ne_bytes()),
            Self::Uint32(value) => number(to, &value.to_ne_bytes()),
            Self::Int64(value) => number(to, &value.to_ne_bytes()),
            Self::Uint64(value) => number(to, &value.to_ne_bytes()),
            Self::Text(value) => text(to, value),
            Self::Texts(list) => array(to, 4, |to| list.iter().for_each(|one| text(to, one))),
            Self::Bytes(list) => array(to, 1, |to| to.extend(list)),
            Self::Numbers(list) => {
                array(to, 4, |to| list.iter().for_each(|one| number(to, &one.to_ne_bytes())));
            }
            Self::Pairs(list) => array(to, 8, |to| {
                for (first, second) in list {
                    align(to, 8);
                    text(to, first);
                    text(to, second);
                }
            }),
        }
    }
}

impl Body {
    /// Adds a value.
    pub(super) fn with_value(mut self, value: &Value) -> Self {
        value.write(&mut self.bytes);
        self.signature += value.signature();
        self
    }

    /// Adds properties: `a(sv)`.
    pub(super) fn with_properties(mut self, properties: &[Property]) -> Self {
        array(&mut self.bytes, 8, |to| {
            for (name, value) in properties {
                align(to, 8);
                text(to, name);
                signature(to, value.signature());
                value.write(to);
            }
        });
        self.signature += "a(sv)";
        self
    }

    /// Adds an empty list of additional units: `a(sa(sv))`.
    pub(super) fn with_no_units(mut self) -> Self {
        array(&mut self.bytes, 8, |_| {});
        self.signature += "a(sa(sv))";
        self
    }

    /// The strings at its start, in order, among 32-bit numbers.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut reader = Reader { bytes: &self.bytes, at: 0 };
        let mut list = vec![];
        for letter in self.signature.bytes() {
            let read = match letter {
                b's' | b'o' => reader.text().map(|text| list.push(text)),
                b'u' | b'i' | b'b' => reader.number().map(drop),
                b'v' => reader.variant_text().map(|text| list.push(text)),
                _ => None,
            };
            if read.is_none() {
                break;
            }
        }
        list
    }
}

impl Message {
    /// The message as it is sent; `destination` is the name on the bus that it goes to.
    pub(super) fn encode(&self, destination: &str) -> Vec<u8> {
        let mut to = vec![BYTE_ORDER, self.kind, 0, 1];
        number(&mut to, &u32::try_from(self.body.bytes.len()).unwrap_or(u32::MAX).to_ne_bytes());
        number(&mut to, &self.serial.to_ne_bytes());
        array(&mut to, 8, |to| {
            let fields = [
                (1, "o", &*self.path),
                (2, "s", &self.interface),
                (3, "s", &self.member),
                (4, "s", &self.error),
                (6, "s", destination),
            ];
            for (field, kind, value) in fields.into_iter().filter(|(.., value)| !value.is_empty()) {
                align(to, 8);
                to.push(field);
                signature(to, kind);
                text(to, value);
            }
            if let Some(serial) = self.reply_serial {
                align(to, 8);
                to.push(5);
                signature(to, "u");
                number(to, &serial.to_ne_bytes());
            }
            if !self.body.signature.is_empty() {
                align(to, 8);
                to.push(8);
                signature(to, "g");
                signature(to, &self.body.signature);
            }
        });
        align(&mut to, 8);
        to.extend(&self.body.bytes);
        to
    }

    /// The total size of a message, from its first [`FIXED_HEADER_SIZE`] bytes; nothing where it is not a message.
    pub(super) fn length(head: &[u8]) -> Option<usize> {
        let word = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
        let (body, fields) = (word(4)?, word(12)?);
        let whole = FIXED_HEADER_SIZE.checked_add(fields)?.checked_next_multiple_of(8)?.checked_add(body)?;
        (head[0] == BYTE_ORDER && head[3] == 1 && whole <= MAX_MESSAGE_SIZE).then_some(whole)
    }

    /// Reads a complete message; `None` if it is not a message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.get(..FIXED_HEADER_SIZE)?;
        let whole = Self::length(fixed)?;
        let word = |at: usize| Some(u32::from_ne_bytes(fixed.get(at..at + 4)?.try_into().ok()?));
        let mut message = Self { kind: bytes[1], serial: word(8)?, ..Self::default() };
        let end = FIXED_HEADER_SIZE + word(12)? as usize;
        let mut reader = Reader { bytes: bytes.get(..end)?, at: FIXED_HEADER_SIZE };
        while reader.at < end {
            reader.align(8)?;
            let (field, kind) = (reader.byte()?, reader.signature()?);
            match (field, kind.as_str()) {
                (1, "o") => message.path = reader.text()?,
                (2, "s") => message.interface = reader.text()?,
                (3, "s") => message.member = reader.text()?,
                (4, "s") => message.error = reader.text()?,
                (5, "u") => message.reply_serial = Some(reader.number()?),
                (8, "g") => message.body.signature = reader.signature()?,
                (_, "s" | "o") => drop(reader.text()?),
                (_, "u") => drop(reader.number()?),
                _ => return None,
            }
        }
        message.body.bytes = bytes.get(end.next_multiple_of(8)..whole)?.to_vec();
        Some(message)
    }
}

#[cfg(test)]
mod tests;
