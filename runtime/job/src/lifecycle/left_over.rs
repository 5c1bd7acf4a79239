//! A role that only served others and still runs when they have ended.

use jobc_schema::role::NeedState;

use super::role::Role;
use super::{Lifecycle, Phase};

impl Lifecycle {
    /// The name of a running role that others needed, and of one of those, when they and all other roles have ended.
    ///
    /// Such a job runs until its timeout if the role is a server.
    pub fn left_over(&self) -> Option<(&str, &str)> {
        let is_over = |role: &Role| role.counts.ended == role.tasks.len();
        let mut found = None;
        for server in self.roles.iter().filter(|role| matches!(self.phase, Phase::Running) && !is_over(role))
        {
            let mut clients = server.needed_by.iter().map(|&number| &self.roles[number]);
            let serves = |client: &Role| {
                let mut needs = client.needs.iter();
                is_over(client)
                    && needs.any(|need| {
                        self.roles[need.role].name == server.name && need.state != NeedState::Succeeded
                    })
            };
            let first = clients.next().filter(|client| serves(client))?;
            if !clients.all(serves) {
                return None;
            }
            found = found.or(Some((server.name.as_str(), first.name.as_str())));
        }
        found
    }
}
