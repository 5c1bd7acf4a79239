//! WebSockets: a terminal in a task, and the language server.

use schemars::JsonSchema;
use serde::Deserialize;

use super::compile::Scratch;
use super::reference::reference;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::language::Language;
use crate::own::Own;
use crate::problem::Problem;
use crate::reply::Answer;
use crate::terminal::Terminal;
use crate::web_socket::accept;

/// The program if none is named: a shell, the better one if the image has it.
const SHELL: &str = "command -v bash >/dev/null && exec bash || exec sh";

/// What is run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecQuery {
    /// The task [default: the only running one].
    #[serde(default)]
    task: Option<String>,
    /// What `sh -c` runs [default: a shell].
    #[serde(default)]
    command: Option<String>,
}

/// Where job files are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LanguageQuery {
    /// The upload that relative paths are below.
    #[serde(default)]
    upload: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            access: crate::tokens::Access::Submit,
            action: Some("exec"),
            ..Endpoint::get(
                "/jobs/{ref}/exec",
                "exec",
                "Run a command in a task, at a terminal (WebSocket)",
                handler!(exec),
            )
            .query(schema::<ExecQuery>)
            .status(101)
        },
        Endpoint::get("/language", "language", "Talk to the language server (WebSocket)", handler!(language))
            .query(schema::<LanguageQuery>)
            .status(101),
    ]
}

async fn exec(mut call: Call) -> Answer {
    let query: ExecQuery = call.query()?;
    let name = reference(&call).await?;
    let task = query.task.as_deref().unwrap_or_default();
    if task.starts_with('-') || !task.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(Problem::bad_request("`task` is the name of a task"));
    }
    let command = query.command.as_deref().filter(|command| !command.is_empty());
    call.note(|notes| notes.about = format!("{name} {task}: {}", command.unwrap_or("a shell")));
    let own = Own::about(&call.server.workspace, "exec").words(&["-t", &name]);
    let own = if task.is_empty() { own } else { own.word(task) };
    let own = own.words(&["--", "sh", "-c", command.unwrap_or(SHELL)]);
    let stream = call.server.limits.stream(&call.actor.user)?;
    accept(&mut call, move |socket| async move {
        match Terminal::start(&own, stream) {
            Ok(terminal) => terminal.serve(socket).await,
            Err(problem) => crate::web_socket::refuse(socket, &problem.detail).await,
        }
    })
}

async fn language(mut call: Call) -> Answer {
    let query: LanguageQuery = call.query()?;
    // Documents are the caller's own: of the host it reads what was uploaded, and the targets file.
    let scratch = Scratch::new(&call.server)?;
    let mut base = call.server.workspace.own_directory(scratch.path().to_owned());
    base.permitted = base.permitted.split_off(call.server.workspace.roots().len());
    if let Some(id) = &query.upload {
        base.permitted.push(call.server.uploads.tree(id)?);
    }
    let own = Own::compile(&base, "lsp");
    let stream = call.server.limits.stream(&call.actor.user)?;
    accept(&mut call, move |socket| async move {
        let _scratch = scratch;
        match Language::start(&own, stream) {
            Ok(language) => language.serve(socket).await,
            Err(problem) => crate::web_socket::refuse(socket, &problem.detail).await,
        }
    })
}
