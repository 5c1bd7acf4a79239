//! Bundles of the backend `oci`: each instance runs a copy in which the addresses of this job are filled in.

use std::fmt::Write as _;

use jobc_schema::target::SlurmContainer;

use super::group::Group;
use super::parts::Parts;
use super::shell::variable;

/// Copies a bundle to a place where its relative paths stay valid, and fills in its placeholders.
pub(super) const FILL: &str = r#"
# A copy of the instance's bundle with the addresses of this job.
jobc_fill() { # ROLE
  local from=$jobc_directory/../oci/$1-$jobc_index
  jobc_bundle=$jobc_bundles/$1-$jobc_index
  mkdir -p "$jobc_bundles" && rm -rf "$jobc_bundle" && cp -r "$from" "$jobc_bundle" &&
    find "$jobc_bundle" -type f -exec sed -i -f "$jobc_run/state/$jobc_group.places" {} +
}
"#;

/// Also finds `jobc` in the usual user directories: a step has the `PATH` of a login.
pub(super) const PROGRAM: &str = r#"PATH=$PATH:$HOME/.local/bin:$HOME/bin
command -v jobc >/dev/null || { jobc_say "no jobc in PATH of $SLURMD_NODENAME: copy it to ~/.local/bin"; exit 125; }
"#;

/// Looks for the files of an image.
pub(super) const IMAGE: &str = r#"
# The files of an image: a directory, or an archive beside it; otherwise its registry has them.
jobc_image() { # PATH...
  jobc_from=()
  for jobc_place; do
    for jobc_root in "$jobc_place" "$jobc_place.tar" "$jobc_place.tar.gz"; do
      [ ! -e "$jobc_root" ] || { jobc_from=(--root "$jobc_root"); return; }
    done
  done
}
"#;

/// Finds a directory of the node, and of this user alone, where images are unpacked once for all steps.
pub(super) const STORE: &str = r#"
jobc_store=${TMPDIR:-/tmp}/jobc-$UID
(umask 077; mkdir -p "$jobc_store") && [ -O "$jobc_store" ] || {
  jobc_say "the directory $jobc_store belongs to another user: write another one as \`store\` of the target"
  exit 125
}
jobc_store+=/images
"#;

/// The part of a batch script for bundles; nothing where none are run.
pub(super) fn places(parts: &Parts<'_>, group: &Group<'_>) -> String {
    if !matches!(parts.container(), SlurmContainer::Jobc | SlurmContainer::Oci) {
        return "jobc_places() { :; }\njobc_clean() { :; }\n\n".to_owned();
    }
    let mut text = String::new();
    if parts.container() == SlurmContainer::Oci {
        text.push_str(FILL.trim_start());
        text.push_str("# Notes the first exit code of an instance.\njobc_lost() { # EXIT_CODE\n  [ \"$code\" -ne 0 ] || code=$1\n}\n");
    }
    text.push_str("# Lines for sed that fill the placeholders of bundles.\njobc_places() {\n  local i\n");
    for role in &parts.job.roles {
        let hosts = format!("jobc_hosts_{}", variable(&role.name));
        let _ = writeln!(text, "  for ((i = 0; i < {}; i++)); do", role.instances);
        let host = if group.roles.iter().any(|own| own.name == role.name) {
            format!("${{{hosts}[i]}}")
        } else {
            String::new()
        };
        let _ = writeln!(text, "    echo \"s#@jobc:host:{}:$i@#{host}#g\"", role.name);
        for port in &role.ports {
            if let Some(offset) = parts.ports.offset(&role.name, &port.label) {
                for number in 0..port.count {
                    let more = offset + number;
                    let _ = writeln!(
                        text,
                        "    echo \"s#@jobc:port:{}:{}:$i+{number}@#$((jobc_port + {more} + i * {}))#g\"",
                        role.name, port.label, port.count
                    );
                }
            }
        }
        text.push_str("  done\n");
    }
    text.push_str("}\n# Removes the copies of bundles.\njobc_clean() { rm -rf \"$jobc_bundles\"; }\n\n");
    text
}
