//! `jobc mcp`: a server of the Model Context Protocol, on stdin and stdout, for programs that write job files for people.
//!
//! Each tool runs the command of the same name in its own process. That way, a call can be canceled, its output is
//! bounded, and an internal error fails only that call. Compilation only reads files below the root directory.

mod advice;
mod command;
mod parameter;
mod root;
mod server;
mod tool;
mod tool_result;
mod tools;
mod transport;

use std::io::IsTerminal as _;

use crate::args::McpArgs;
use crate::outcome::Outcome;
use crate::terminal;

use root::Root;
use server::Server;
use tool::Permissions;
use transport::Lines;

pub(crate) fn run(args: &McpArgs) -> Outcome {
    let root = match Root::open(&args.root) {
        Ok(root) => root,
        Err(why) => {
            terminal::eprint(&format!("jobc: {why}\n"));
            return Outcome::UsageError;
        }
    };
    // A panic fails one call, and the log has it.
    std::panic::set_hook(Box::new(|panic| eprintln!("jobc mcp: internal error: {panic}")));
    if std::io::stdin().is_terminal() {
        terminal::eprint(
            "jobc mcp: waiting for a client on stdin; docs/guides/agents.md shows how to set one up\n",
        );
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::eprint(&format!("jobc mcp: cannot start: {error}\n"));
            return Outcome::SystemError;
        }
    };
    let mut lines = Lines::of_stdio();
    let writer = lines.writer();
    let result = runtime.block_on(serve(
        Server::new(root, Permissions { write: args.allow_write, run: args.allow_run }),
        lines,
    ));
    // Calls that still run are killed by this.
    drop(runtime);
    writer.finish();
    match result {
        Ok(()) => Outcome::Success,
        Err(why) => {
            terminal::eprint(&format!("jobc mcp: {why}\n"));
            Outcome::Errors
        }
    }
}

/// Serves one client until it closes stdin or no longer reads.
async fn serve(server: Server, lines: Lines) -> Result<(), String> {
    use rmcp::service::ServerInitializeError;
    match rmcp::serve_server(server, lines).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // A client that disconnects before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::TransportError { .. }) => {
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}
