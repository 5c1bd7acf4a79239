//! `WORKDIR`.

use super::copy::owner;
use super::{Stage, StepOutcome};
use crate::build::files::CopyRequest;
use jobc_dockerfile::Word;

impl Stage<'_> {
    /// `WORKDIR`: missing directories are created, owned by the current user, as with BuildKit.
    pub(super) fn workdir(&mut self, word: &Word, text: &str) -> StepOutcome<()> {
        self.result.settings.workdir(&self.variables.expand(word)?);
        let execution = &self.result.settings.execution;
        let (target, user) = (execution.working_dir.clone(), execution.user.clone());
        let key = self.key("directory").with(&target).with(&user).finish();
        self.layer(key, text, |stage, step, lowers| {
            let owner = if user.is_empty() { (0, 0) } else { owner(&user, word, &lowers)? };
            let copy = CopyRequest {
                lowers,
                step: step.path().to_owned(),
                target,
                owner: Some(owner),
                ..CopyRequest::default()
            };
            stage.copy_files(&copy)
        })
    }
}
