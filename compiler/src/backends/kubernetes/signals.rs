//! The stop signal for the program behind a shell.
//!
//! The kubelet sends it to the first process of a container alone. A shell there ignores it while it waits for a program,
//! which is killed without notice at the end of the grace period. So the shell is replaced by its last command where
//! that is the same, and else has a parent that passes the signal on as `jobc run` does.

use jobc_schema::plan::{CommandPlan, Launch, RolePlan, Text};
use jobc_schema::signal;

use crate::backend::signals::{Way, shell, way};

use super::address::escape;

/// The number of SIGTERM.
const TERM: i32 = 15;

/// Runs its arguments and passes the signal `@NAME` on. The signal goes to the processes that
/// catch it: what waits for them or reads from them would end before they have saved. A worker inherits the handler of
/// its parent, which tells it. Where none catches it, all get it. `SigCgt` of proc(5) is a mask in hexadecimal,
/// in which `@MASK` is the signal.
const PASS_ON: &str = r#"stop() {
  all='' catch=''
  set --
  for file in /proc/[0-9]*/status; do
    pid=${file#/proc/} pid=${pid%/status} parent='' mask=''
    [ "$pid" -ne 1 ] || continue
    while read -r key value; do
      case $key in PPid:) parent=$value ;; SigCgt:) mask=$value ;; esac
    done 2>/dev/null <"$file" || continue
    all="$all $pid"
    case $mask in @MASK) catch="$catch $pid" && set -- "$@" "$pid:$parent" ;; esac
  done
  for one; do
    case "$catch " in *" ${one#*:} "*) ;; *) kill -@NAME "${one%:*}" ;; esac
  done
  [ $# -gt 0 ] || kill -@NAME $all
}
[ $$ -ne 1 ] || trap stop @NAME
"$@" &
child=$! code=0
while wait "$child" || code=$?; kill -0 "$child" 2>/dev/null; do code=0; done
exit "$code"
"#;

/// Makes a command of which the last word is the role's script get SIGTERM.
pub(super) fn reachable(role: &RolePlan, mut command: Vec<String>) -> Vec<String> {
    let (Some(shell), Some(script)) = (shell(role), command.last_mut()) else { return command };
    if role.launch == Launch::None {
        return command; // jobc's own
    }
    let (name, _) = stop_signal(role);
    match way(shell, script, &name) {
        Way::Itself => command,
        Way::Exec(at) => {
            script.insert_str(at, "exec ");
            command
        }
        Way::PassOn => pass_on(shell, role).into_iter().map(|word| escape(&word)).chain(command).collect(),
    }
}

/// The words before a command whose script is not known yet to the letter; none where it gets the signal itself.
pub(super) fn before(role: &RolePlan) -> Vec<String> {
    let CommandPlan::Script { setup, script, .. } = &role.command else { return vec![] };
    let plain = |text: &Text| text.render(|_| "$(X)".to_owned());
    let (name, _) = stop_signal(role);
    let itself = |shell: &&str| setup.is_none() && way(shell, &plain(script), &name) == Way::Itself;
    shell(role).filter(|shell| !itself(shell)).map(|shell| pass_on(shell, role)).unwrap_or_default()
}

fn pass_on(shell: &str, role: &RolePlan) -> Vec<String> {
    let (name, number) = stop_signal(role);
    let digits = ["13579bdf", "2367abef", "4567cdef", "89abcdef"];
    let (places, bit) = ((number - 1) / 4, (number - 1) % 4);
    let mask = format!("*[{}]{}", digits[bit], "?".repeat(places));
    let script = PASS_ON.replace("@NAME", &name).replace("@MASK", &mask);
    [shell, "-c", &script, "jobc"].map(str::to_owned).to_vec()
}

/// The signal that stops a role's instances, as `trap` and `kill` of a shell name it, and its number.
fn stop_signal(role: &RolePlan) -> (String, usize) {
    let number = role.stop_signal.as_deref().and_then(signal::number).unwrap_or(TERM);
    let name = signal::name(number).map_or_else(|| number.to_string(), str::to_owned);
    (name, usize::try_from(number).unwrap_or_default())
}
