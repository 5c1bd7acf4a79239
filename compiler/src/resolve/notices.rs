//! `notify`: the receivers of notices.

use jobc_schema::Pointer;

use super::context::Context;
use super::secrets::check_secret;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Checks the secrets and addresses.
pub(super) fn check(context: &Context<'_>, sink: &mut Sink) {
    for (number, notice) in context.job.notify.iter().enumerate() {
        let at = Pointer::ROOT.key("notify").index(number);
        if let Some(name) = &notice.webhook {
            check_secret(context, name, &at.key("webhook"), sink);
        }
        if let Some(address) = notice.email.as_ref().filter(|address| !is_address(address)) {
            sink.push(
                Diagnostic::error(codes::NOTICE, format!("`{address}` is not an e-mail address"))
                    .at(&at.key("email"), "")
                    .note("write one address, such as `ada@example.com`, and an entry for each receiver"),
            );
        }
    }
}

/// Whether sendmail(8) takes it for one address, and for no option.
fn is_address(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"<>(),;:\\\"[]".contains(c);
    let parts = text.split_once('@').filter(|(user, host)| !user.is_empty() && !host.is_empty());
    parts.is_some_and(|(_, host)| !host.contains('@')) && !text.starts_with('-') && text.chars().all(plain)
}
