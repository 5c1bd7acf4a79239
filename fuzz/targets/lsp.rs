//! A client of the language server: bytes as they are, or, after `!`, one message a line in correct frames.
#![no_main]
use std::io::Cursor;

use jobc_compiler::files::MemoryFiles;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut stream = Vec::new();
    match bytes.strip_prefix(b"!") {
        None => stream.extend_from_slice(bytes),
        Some(messages) => {
            for message in messages.split(|byte| *byte == b'\n') {
                stream.extend_from_slice(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes());
                stream.extend_from_slice(message);
            }
        }
    }
    jobc_lsp::serve_streams(Cursor::new(stream), std::io::sink(), &MemoryFiles::default())
        .expect("memory does not fail");
});
