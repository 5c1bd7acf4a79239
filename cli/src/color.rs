//! When to use colors, by the settings.

use crate::args::ColorArg;
use crate::settings::current;
use crate::settings::names::COLOR;

/// The choice of the settings, for a command line without one.
pub(crate) fn color_setting() -> ColorArg {
    let value = current().value(&COLOR).ok().flatten();
    value.and_then(|value| ColorArg::of_setting(&value.text)).unwrap_or(ColorArg::Auto)
}
