//! Bundles of the backend `oci`: each instance runs a copy in which the addresses of this job are filled in.

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
