//! J0304: a server that divides its model among another number of GPUs than it has.

use jobc_schema::gpu::Gpu;
use jobc_schema::plan::CommandPlan;

use crate::check::command::{Command, plain};
use crate::check::gpu::gpu_at;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Servers: the program, the module or the end of the image's name, and the flags whose product is the number of GPUs.
const SERVERS: [(&str, &str, &str, &[&[&str]]); 3] = [
    (
        "vllm",
        "vllm.entrypoints",
        "vllm-openai",
        &[
            &["--tensor-parallel-size", "-tp"],
            &["--pipeline-parallel-size", "-pp"],
            &["--data-parallel-size", "-dp"],
        ],
    ),
    ("sglang", "sglang.launch_server", "sglang", &[&["--tp-size", "--tp"], &["--pp-size"], &["--dp-size"]]),
    ("text-generation-launcher", "", "text-generation-inference", &[&["--num-shard"]]),
];

/// Warns where an instance by itself has fewer GPUs than its server divides the model among, or more.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.gpus() > 0 && role.member.is_none()) {
        let arguments = arguments(view, role);
        let found = role.commands.iter().chain(&arguments).find_map(|command| used(role, command));
        let Some((server, flag, used)) = found.filter(|(.., used)| *used != role.gpus()) else { continue };
        let (name, gpus) = (&role.plan.name, role.gpus());
        let message = if used > gpus {
            format!(
                "`{server}` divides the model among {used} GPUs, and an instance of `{name}` has {gpus}: it does not start"
            )
        } else {
            let are = if gpus - used == 1 { "is" } else { "are" };
            format!(
                "`{server}` uses {used} of the {gpus} GPUs of an instance of `{name}`: {} {are} idle",
                gpus - used
            )
        };
        let found = Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
            .at(&role.run_at(), "")
            .at(&gpu_at(role), "")
            .note(format!("`{flag}` and `gpu` have to agree"));
        let gpu =
            role.spec.and_then(|spec| spec.resources.as_ref()).and_then(|resources| resources.gpu.as_ref());
        sink.push(match gpu {
            Some(Gpu::Rules(_)) => found.set(&gpu_at(role).key("count"), used),
            _ => found.set(&gpu_at(role), used),
        });
    }
}

/// The arguments of a role that runs the program of such an image, as a command.
fn arguments(view: &View<'_>, role: &RoleView<'_>) -> Option<Command> {
    let CommandPlan::Args(args) = &role.plan.command else { return None };
    let (reference, _) = view.base(view.plan.image_of(role.plan)?)?;
    let (program, ..) = SERVERS.iter().find(|(_, _, image, _)| reference.contains(image))?;
    let words = std::iter::once((*program).to_owned()).chain(args.iter().map(plain)).collect();
    Some(Command { words, ..Command::default() })
}

/// The name of a server, its first flag, and the number of GPUs that its flags need; `None` without a flag.
fn used(role: &RoleView<'_>, command: &Command) -> Option<(&'static str, String, u32)> {
    let (server, _, _, flags) = SERVERS.iter().find(|(program, module, ..)| {
        command.program() == *program
            || !module.is_empty() && command.python_module().is_some_and(|own| own.starts_with(module))
    })?;
    let first = flags.iter().find_map(|names| command.one_of(names))?.0.to_owned();
    let mut product = 1_u32;
    for names in flags.iter().filter(|names| command.one_of(names).is_some()) {
        product = product.checked_mul(role.number(command, names)?)?;
    }
    Some((server, first, product))
}
