//! Names of users: from /etc/passwd at once, from the name service (which may ask the network) on a thread of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::SystemTime;

use nix::unistd::{Uid, User};

/// A uid with its name, if it has one.
type Answer = (u32, Option<String>);

/// A cache of names.
#[derive(Debug)]
pub struct Users {
    passwd: PathBuf,
    read_at: Option<SystemTime>,
    local: BTreeMap<u32, String>,
    /// `None`: asked, no answer or no name.
    remote: BTreeMap<u32, Option<String>>,
    service: Option<(mpsc::Sender<u32>, mpsc::Receiver<Answer>)>,
}

impl Users {
    /// Knows nobody before the first refresh.
    #[must_use]
    pub fn new(etc: &std::path::Path) -> Self {
        Self {
            passwd: etc.join("passwd"),
            read_at: None,
            local: BTreeMap::new(),
            remote: BTreeMap::new(),
            service: None,
        }
    }

    /// The name, or the uid in digits as long as no name is known. Never blocks on the network.
    pub fn name(&mut self, uid: u32) -> String {
        if let Some(name) = self.local.get(&uid) {
            return name.clone();
        }
        while let Some((uid, name)) = self
            .service
            .as_ref()
            .and_then(|(_, answers)| answers.try_recv().ok())
        {
            self.remote.insert(uid, name);
        }
        match self.remote.get(&uid) {
            Some(name) => name.clone().unwrap_or_else(|| uid.to_string()),
            None => {
                self.remote.insert(uid, None);
                self.ask(uid);
                uid.to_string()
            }
        }
    }

    /// Reads the file again when it has changed. Called once a round.
    pub fn refresh(&mut self) {
        let changed = std::fs::metadata(&self.passwd)
            .and_then(|meta| meta.modified())
            .ok();
        if changed.is_some() && changed != self.read_at {
            self.read_at = changed;
            self.local = parse(&std::fs::read_to_string(&self.passwd).unwrap_or_default());
        }
    }

    fn ask(&mut self, uid: u32) {
        let (questions, _) = self.service.get_or_insert_with(|| {
            let (ask, questions) = mpsc::channel::<u32>();
            let (answer, answers) = mpsc::channel();
            let spawned = std::thread::Builder::new()
                .name("users".to_owned())
                .spawn(move || {
                    for uid in questions {
                        let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
                        if answer.send((uid, found.map(|user| user.name))).is_err() {
                            return;
                        }
                    }
                });
            if let Err(error) = spawned {
                tracing::debug!(%error, "no thread for user names");
            }
            (ask, answers)
        });
        // Without the thread the uid stays a number.
        let _gone = questions.send(uid);
    }
}

fn parse(passwd: &str) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for line in passwd.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(uid)) = (
            fields.next(),
            fields.nth(1).and_then(|uid| uid.parse().ok()),
        ) {
            // As getpwuid: the first one wins.
            names.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_passwd_and_else_stay_numbers() {
        let etc = tempfile::tempdir().unwrap();
        std::fs::write(
            etc.path().join("passwd"),
            "root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbad\n",
        )
        .unwrap();
        let mut users = Users::new(etc.path());
        users.refresh();
        assert_eq!(users.name(0), "root");
        assert_eq!(users.name(1000), "alice");
        assert_eq!(users.name(3_999_999_999), "3999999999");
    }
}
