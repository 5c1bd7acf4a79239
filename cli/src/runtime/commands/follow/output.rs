//! Our stdout and stderr, in order.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

/// Both outputs behind one buffer. Bytes for one are written after earlier bytes for the other, even if both are the
/// same terminal or pipe.
pub(crate) struct OutputStreams {
    writers: [Box<dyn Write + Send>; 2],
    buffer: Vec<u8>,
    current: OutputStream,
    /// Outputs whose readers have closed them.
    closed: [bool; 2],
    /// Whether to continue when stdout cannot be written.
    ignore_stdout_errors: bool,
    color: [bool; 2],
    terminal: [bool; 2],
    /// Lines that stay below all others of the terminal.
    footer: Vec<String>,
    /// How many lines of a footer are on the screen.
    drawn: usize,
    /// Whether the last byte that was written ended a line.
    is_at_line_start: bool,
}

/// The buffer is flushed at this size in bytes.
const FLUSH_BYTES: usize = 64 << 10;

impl OutputStreams {
    pub(crate) fn new(goes_on: bool) -> Self {
        let never = anstream::ColorChoice::Never;
        Self {
            writers: [Box::new(io::stdout()), Box::new(io::stderr())],
            buffer: Vec::new(),
            current: OutputStream::Stdout,
            closed: [false; 2],
            ignore_stdout_errors: goes_on,
            color: [
                anstream::AutoStream::choice(&io::stdout()) != never,
                anstream::AutoStream::choice(&io::stderr()) != never,
            ],
            terminal: [io::stdout().is_terminal(), io::stderr().is_terminal()],
            footer: vec![],
            drawn: 0,
            is_at_line_start: true,
        }
    }

    /// Sets the lines that stay below all others, each shorter than the terminal is wide. Nothing is below a line whose end
    /// has not been written.
    pub(crate) fn set_footer(&mut self, lines: Vec<String>) -> io::Result<()> {
        if self.terminal != [true; 2] {
            return Ok(());
        }
        self.flush()?;
        if lines == self.footer && self.drawn == lines.len() {
            return Ok(());
        }
        self.footer = lines;
        if self.is_at_line_start {
            let text = [self.erased_footer(), self.drawn_footer()].concat();
            let writer = &mut self.writers[OutputStream::Stderr as usize];
            // An error of stderr cannot be reported.
            let _ = writer.write_all(&text).and_then(|()| writer.flush());
        }
        Ok(())
    }

    /// Moves the cursor to the first line of the footer and clears what is below (ECMA-48, CUU and ED).
    fn erased_footer(&mut self) -> Vec<u8> {
        match std::mem::take(&mut self.drawn) {
            0 => vec![],
            lines => format!("\r\x1b[{lines}A\x1b[J").into_bytes(),
        }
    }

    fn drawn_footer(&mut self) -> Vec<u8> {
        self.drawn = self.footer.len();
        let line = |line: &String| {
            if self.color[1] { format!("\x1b[2m{line}\x1b[0m\n") } else { format!("{line}\n") }
        };
        self.footer.iter().map(line).collect::<String>().into_bytes()
    }

    /// Whether colors are enabled.
    pub(crate) fn is_colored(&self, to: OutputStream) -> bool {
        self.color[to as usize]
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(&self, to: OutputStream) -> bool {
        self.terminal[to as usize]
    }

    /// Selects the output of the next bytes.
    pub(crate) fn select(&mut self, to: OutputStream) -> io::Result<&mut Vec<u8>> {
        if self.current != to || self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
            self.current = to;
        }
        Ok(&mut self.buffer)
    }

    /// Flushes everything.
    ///
    /// # Errors
    ///
    /// Those of stdout, including `BrokenPipe`, once, unless `goes_on` is set. If stderr is closed, nothing can be
    /// reported.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() && self.terminal == [true; 2] {
            // In one write, so that nothing flickers: both outputs are the terminal.
            let text = [self.erased_footer(), std::mem::take(&mut self.buffer)].concat();
            self.is_at_line_start = text.ends_with(b"\n");
            let footer = if self.is_at_line_start { self.drawn_footer() } else { vec![] };
            self.buffer = [text, footer].concat();
        }
        let writer = &mut self.writers[self.current as usize];
        let closed = &mut self.closed[self.current as usize];
        let result = if self.buffer.is_empty() || *closed {
            Ok(())
        } else {
            writer.write_all(&self.buffer).and_then(|()| writer.flush())
        };
        self.buffer.clear();
        *closed |= result.is_err();
        match result {
            Err(error) if self.current == OutputStream::Stdout && !self.ignore_stdout_errors => {
                Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
            }
            Err(error) if self.current == OutputStream::Stdout && error.kind() != ErrorKind::BrokenPipe => {
                let line =
                    format!("jobc: cannot write to standard output: {error}; `jobc logs` has the rest\n");
                let _ = self.writers[OutputStream::Stderr as usize].write_all(line.as_bytes());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes both outputs to one buffer; both are terminals with colors, or neither.
    #[cfg(test)]
    pub(crate) fn in_memory(terminal: bool) -> (Self, std::sync::Arc<std::sync::Mutex<Vec<u8>>>) {
        #[derive(Clone, Default)]
        struct Memory(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Memory {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let memory = Memory::default();
        let outputs = Self {
            writers: [Box::new(memory.clone()), Box::new(memory.clone())],
            color: [terminal; 2],
            terminal: [terminal; 2],
            ..Self::new(false)
        };
        (outputs, memory.0)
    }
}

/// Ends the command if its reader has closed the pipe, as `head` does. This is not an error.
pub(crate) fn or_exit<T>(result: io::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            crate::terminal::eprint(&format!("jobc: {error}\n"));
            std::process::exit(3);
        }
    }
}
