//! Answers the requests of a client.

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::Semaphore;

use super::advice::Reader;
use super::parameter::Arguments;
use super::root::Root;
use super::tool::{Effect, Permissions, Tool};
use super::tool_result;
use super::tools::TOOLS;

/// Maximum number of commands at the same time; other calls wait.
const MAX_COMMANDS: usize = 4;

/// Methods whose parameters the library reads. With other parameters they arrive as unknown ones.
const OWN_METHODS: [&str; 4] = ["initialize", "ping", "tools/call", "tools/list"];

/// Instructions for clients on how to use the tools.
const INSTRUCTIONS: &str = "jobc compiles one job file into OCI bundles, Kubernetes manifests, Slurm scripts and OpenPAI jobs. \
    Write the job file, call `check` until there are no errors, and read the result of `plan`. `explain` has the page of every \
    diagnostic code and field: do not guess fields. Paths are relative to the root directory.";

/// The server of one client.
pub(super) struct Server {
    root: Root,
    permissions: Permissions,
    slots: Semaphore,
}

impl Server {
    pub(super) fn new(root: Root, permissions: Permissions) -> Self {
        Self { root, permissions, slots: Semaphore::new(MAX_COMMANDS) }
    }

    fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        TOOLS.iter().filter(|tool| tool.is_permitted(self.permissions))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("jobc", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools().map(Tool::listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(unknown(&request.name), None));
        };
        let command = Arguments::read(tool.parameters, request.arguments.unwrap_or_default())
            .and_then(|arguments| (tool.command)(&arguments, &self.root));
        let command = match command {
            Ok(command) => command,
            // A model reads this and corrects its call; it never sees protocol errors.
            Err(why) => return Ok(tool_result::error(&why).into()),
        };
        let call = async {
            let _slot = self.slots.acquire().await;
            jobc_process::run(command.own(&self.root)).await
        };
        let result = tokio::select! {
            result = call => result,
            // The result of a cancelled call is not read, and its process is killed.
            () = context.ct.cancelled() => Err("cancelled".to_owned()),
        };
        Ok(match result {
            Ok(finished) => {
                let reader = Reader { tool, permissions: self.permissions };
                tool_result::of(&command, &finished, reader)
            }
            Err(why) => tool_result::error(&format!("`jobc {}`: {why}", command.words[0])),
        }
        .into())
    }

    /// A method that the protocol does not have, or one of its own with other parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(if OWN_METHODS.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("invalid parameters of `{method}`"), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None)
        })
    }
}

fn unknown(name: &str) -> String {
    let off = |option: &str, instead: &str| {
        format!(
            "the tool `{name}` is off, and no call turns it on: ask the user to start the server with `{option}`; {instead}"
        )
    };
    match TOOLS.iter().find(|tool| tool.name == name).map(|tool| tool.effect) {
        Some(Effect::Writes) => off("--allow-write", "`check` returns the fixes of findings as edits"),
        Some(_) if !crate::platform::RUNS_JOBS => format!("the tool `{name}` needs Linux"),
        Some(_) => off("--allow-run", "`plan` shows what a job would run"),
        None => format!("unknown tool `{}`", name.escape_debug()),
    }
}
