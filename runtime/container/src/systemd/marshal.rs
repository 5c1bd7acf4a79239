//! Numbers, texts and lists as D-Bus writes them (D-Bus specification, "Marshaling"), in this host's order of bytes.

/// Bytes that came, read from one place on; missing or invalid data reads as nothing.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Reader<'_> {
    pub(super) fn align(&mut self, to: usize) -> Option<()> {
        self.at = self.at.next_multiple_of(to);
        (self.at <= self.bytes.len()).then_some(())
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let from = self.at;
        self.at = from.checked_add(count)?;
        self.bytes.get(from..self.at)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.align(4)?;
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let count = self.number()? as usize;
        self.nul_terminated(count)
    }

    pub(super) fn signature(&mut self) -> Option<String> {
        let count = usize::from(self.byte()?);
        self.nul_terminated(count)
    }

    /// Bytes followed by a NUL.
    fn nul_terminated(&mut self, count: usize) -> Option<String> {
        let text = String::from_utf8(self.take(count)?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    pub(super) fn variant_text(&mut self) -> Option<String> {
        (self.signature()? == "s").then(|| self.text())?
    }
}

/// Pads to a multiple of this many bytes.
pub(super) fn align(to: &mut Vec<u8>, to_multiple_of: usize) {
    to.resize(to.len().next_multiple_of(to_multiple_of), 0);
}

/// A number, at a multiple of its own size.
pub(super) fn number(to: &mut Vec<u8>, bytes: &[u8]) {
    align(to, bytes.len());
    to.extend(bytes);
}

/// A text: its length, its bytes, a NUL.
pub(super) fn text(to: &mut Vec<u8>, text: &str) {
    number(to, &u32::try_from(text.len()).unwrap_or(u32::MAX).to_ne_bytes());
    to.extend(text.as_bytes());
    to.push(0);
}

/// The types of the following values, as a string with a length of one byte.
pub(super) fn signature(to: &mut Vec<u8>, text: &str) {
    to.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    to.extend(text.as_bytes());
    to.push(0);
}

/// A list: its length in bytes, without the padding before its first element, which is at a multiple of `element`.
pub(super) fn array(to: &mut Vec<u8>, element: usize, write: impl FnOnce(&mut Vec<u8>)) {
    align(to, 4);
    let place = to.len();
    to.extend([0; 4]);
    align(to, element);
    let begin = to.len();
    write(to);
    let length = u32::try_from(to.len() - begin).unwrap_or(u32::MAX);
    to[place..place + 4].copy_from_slice(&length.to_ne_bytes());
}
