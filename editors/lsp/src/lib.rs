//! The language server of jobc: compiles the open files of an editor as they are typed.
//!
//! [`serve`] handles one client over a [`Connection`], [`Embedded`] one in a host without threads. Both read the open
//! files of the client and, through the trait [`Files`](jobc_compiler::files::Files), the files next to them. They
//! write no files and start no programs. Findings are those of the compiler, unchanged.
//! docs/reference/language-server.md lists the features.
//!
//! Reading order: `transport` (bytes), `host` (waiting), `server` (messages), `session` (state), `tree` (a parsed
//! text), `analysis` (a compiled job), then one file per feature:
//! `diagnostics`, `actions`, `extract`, `complete`, `hover`, `goto`, `outline`, `hints`, `format`, `links`, `select`, `tokens`,
//! `requests`, `import`, `targets`, `why`.
#![forbid(unsafe_code)]

mod actions;
mod amounts;
mod analysis;
mod capabilities;
mod client;
mod complete;
mod diagnostics;
mod dispatch;
mod documents;
mod extract;
mod format;
mod goto;
mod hints;
mod host;
mod hover;
mod import;
mod kind;
mod links;
mod names;
mod outline;
mod overlay;
mod recognize;
mod requests;
mod schema;
mod select;
mod selected;
mod server;
mod session;
mod targets;
mod template;
mod text;
mod tokens;
mod transport;
mod tree;
mod uri;
mod variables;
mod why;

pub use host::{Embedded, serve};
pub use lsp_server::{Connection, Message};
pub use server::{Clock, SessionEnd};

/// Handles a client on stdin and stdout.
///
/// # Errors
/// Fails if stdin or stdout fails in the middle of a message.
pub fn serve_stdio(disk: &dyn jobc_compiler::files::Files) -> std::io::Result<SessionEnd> {
    serve_streams(std::io::stdin(), std::io::stdout(), disk)
}

/// Handles a client on two byte streams.
///
/// # Errors
/// Fails if a stream fails in the middle of a message.
pub fn serve_streams(
    input: impl std::io::Read + Send + 'static,
    output: impl std::io::Write + Send + 'static,
    disk: &dyn jobc_compiler::files::Files,
) -> std::io::Result<SessionEnd> {
    let (connection, threads) = transport::connect(input, output);
    let ended = serve(&connection, disk);
    // The writer ends when the last sender is dropped.
    drop(connection);
    if ended == SessionEnd::Properly { threads.join().map(|()| ended) } else { Ok(ended) }
}

#[cfg(test)]
mod tests;
