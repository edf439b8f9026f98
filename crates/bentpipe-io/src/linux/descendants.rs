//! The processes that a program leaves behind: children of its children, and daemons.
//!
//! The calling process becomes a "child subreaper" (PR_SET_CHILD_SUBREAPER in prctl(2)): a descendant whose parent has
//! ended becomes its child, not that of init. So a descendant stays one, even in a session of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;

/// Time between two checks whether the processes have ended.
const LOOK: Duration = Duration::from_millis(10);

/// Descendants of this process, other than the children that it had at first and theirs.
#[derive(Debug)]
pub struct Descendants {
    own: BTreeSet<Pid>,
}

impl Descendants {
    /// Makes descendants stay with this process when their parents end, from now on.
    ///
    /// # Errors
    /// Fails if the kernel refuses it, or if `/proc` cannot be read.
    pub fn adopt() -> io::Result<Self> {
        nix::sys::prctl::set_child_subreaper(true)?;
        let own = parents()?.into_iter().filter(|(_, parent)| *parent == Pid::this()).map(|(pid, _)| pid);
        Ok(Descendants { own: own.collect() })
    }

    /// Waits for orphans that have ended; `program` and the children from the beginning are left to others.
    pub fn reap(&self, program: u32) {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(status) = waitid(Id::All, flags) {
            let Some(pid) = status.pid().filter(|pid| pid.as_raw() as u32 != program && !self.own.contains(pid)) else {
                return;
            };
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
    }

    /// Ends all of them: SIGTERM, a second one after half of `grace`, and SIGKILL after all of it. Call it when the
    /// program has ended and has been waited for. Returns the number of processes that had to be killed.
    ///
    /// The second SIGTERM is for gateways, which after the first one complete open connections.
    pub fn end(&self, grace: Duration) -> usize {
        let begin = Instant::now();
        let [mut asked, mut asked_again, mut killed] = [(); 3].map(|()| BTreeSet::new());
        loop {
            self.reap(0);
            let Ok(alive) = self.alive() else { return killed.len() };
            let took = begin.elapsed();
            // A process that cannot be killed waits for a device. It must not hold up its parent.
            if alive.is_empty() || took >= grace * 2 {
                return killed.len();
            }
            for pid in alive {
                if took >= grace {
                    // Processes may still start others, so all are killed again and again.
                    let _ = kill(pid, Signal::SIGKILL);
                    killed.insert(pid);
                } else if asked.insert(pid) || took >= grace / 2 && asked_again.insert(pid) {
                    let _ = kill(pid, Signal::SIGTERM);
                    // A stopped process notices SIGTERM only when it continues.
                    let _ = kill(pid, Signal::SIGCONT);
                }
            }
            thread::sleep(LOOK);
        }
    }

    /// All running descendants, without zombies.
    fn alive(&self) -> io::Result<BTreeSet<Pid>> {
        let parents = parents()?;
        let mut found = BTreeSet::new();
        let mut next = vec![Pid::this()];
        while let Some(of) = next.pop() {
            let children = parents.iter().filter(|(pid, parent)| **parent == of && !self.own.contains(pid));
            next.extend(children.map(|(pid, _)| *pid).filter(|pid| found.insert(*pid)));
        }
        Ok(found)
    }
}

/// The parents of all processes that are not zombies (`/proc/PID/stat`, proc_pid_stat(5)).
fn parents() -> io::Result<BTreeMap<Pid, Pid>> {
    let numbers = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name is in parentheses and may itself contain some.
        let mut words = text.rsplit_once(')')?.1.split_whitespace();
        let state = words.next()?;
        let parent = words.next()?.parse().ok()?;
        (state != "Z" && state != "X").then(|| (Pid::from_raw(pid), Pid::from_raw(parent)))
    };
    Ok(numbers.filter_map(parent).collect())
}
