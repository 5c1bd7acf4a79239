//! SIGTERM for the program behind a shell.
//!
//! The kubelet sends it to the first process of a container alone. A shell there ignores it while it waits for a program,
//! which is killed without notice at the end of the grace period. So the shell is replaced by its last command where
//! that is the same, and else has a parent that passes the signal on as `jobc run` does.

use jobc_schema::plan::{CommandPlan, Launch, RolePlan, Text};

use crate::backend::signals::{Way, shell, way};

use super::address::escape;

/// Runs its arguments and passes SIGTERM on. The signal goes to the processes that
/// catch it: what waits for them or reads from them would end before they have saved. A worker inherits the handler of
/// its parent, which tells it. Where none catches it, all get it. `SigCgt` of proc(5) is a mask in hexadecimal.
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
    case $mask in *[4567cdef]???) catch="$catch $pid" && set -- "$@" "$pid:$parent" ;; esac
  done
  for one; do
    case "$catch " in *" ${one#*:} "*) ;; *) kill -TERM "${one%:*}" ;; esac
  done
  [ $# -gt 0 ] || kill -TERM $all
}
[ $$ -ne 1 ] || trap stop TERM
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
    match way(shell, script) {
        Way::Itself => command,
        Way::Exec(at) => {
            script.insert_str(at, "exec ");
            command
        }
        Way::PassOn => pass_on(shell).into_iter().map(|word| escape(&word)).chain(command).collect(),
    }
}

/// The words before a command whose script is not known yet to the letter; none where it gets the signal itself.
pub(super) fn before(role: &RolePlan) -> Vec<String> {
    let CommandPlan::Script { setup, script, .. } = &role.command else { return vec![] };
    let plain = |text: &Text| text.render(|_| "$(X)".to_owned());
    let itself = |shell: &&str| setup.is_none() && way(shell, &plain(script)) == Way::Itself;
    shell(role).filter(|shell| !itself(shell)).map(pass_on).unwrap_or_default()
}

fn pass_on(shell: &str) -> Vec<String> {
    [shell, "-c", PASS_ON, "jobc"].map(str::to_owned).to_vec()
}
