//! Installs and removes rules, using `nft` and `ip`.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use bentpipe_io::{program, succeeded};
use socket2::Domain;

use super::instance::{Instance, Routed};
use super::{Rules, VERSIONS, words};
use crate::sockets::has_family;

impl Rules {
    /// Asks the kernel whether it would accept the rules. Changes nothing.
    ///
    /// # Errors
    /// Fails if `nft` is not installed, or with the message of `nft` if the kernel would not accept the rules.
    pub fn check(&self, instance: &Instance) -> io::Result<()> {
        nft(&["-c"], &self.nft(instance))
    }

    /// Installs the rules. Rules left by an earlier gateway with this name are replaced atomically.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::AddrInUse`] if another gateway's name gives the same marks, or if a foreign routing
    /// rule uses one of them; otherwise with the message of `nft` or `ip`. If it fails, nothing is left behind, except
    /// rules that refuse new connections if there were some.
    pub fn install(&self, instance: &Instance) -> io::Result<()> {
        let listed = run("nft", &["list", "tables", "inet"])?;
        let tables: Vec<_> = listed.lines().filter_map(|line| line.rsplit(' ').next()).collect();
        tables.iter().try_for_each(|table| no_collision(instance, Instance::of_table(table)))?;
        for family in VERSIONS {
            // A machine without this IP version has no rules for it.
            let rules = run("ip", &[family, "rule", "show"]).unwrap_or_default();
            rules.lines().try_for_each(|line| is_no_one_elses(instance, line))?;
        }
        let done = self.replace(instance);
        if done.is_err() {
            let were_there = tables.contains(&&*instance.table());
            let _ = if were_there { self.fall_back(instance) } else { self.remove(instance) };
        }
        done
    }

    /// Installs the rules in place of those that this gateway has installed before. If `nft` fails, these remain.
    ///
    /// # Errors
    /// Fails with the message of `nft` or `ip`.
    pub(crate) fn replace(&self, instance: &Instance) -> io::Result<()> {
        nft(&[], &self.nft(instance))?;
        let wanted = self.routes(instance);
        for command in wanted.iter().filter(|command| is_there(&command[0])) {
            match ip(command) {
                Err(error) if !error.to_string().contains("File exists") => return Err(error),
                _ => {}
            }
        }
        // Rules left by a gateway with this name and another shape.
        let left = VERSIONS.map(|family| [instance.local(), instance.device()].map(|routed| (family, routed)));
        for (family, routed) in left.into_iter().flatten() {
            if !wanted.contains(&instance.rule(family, "add", routed)) {
                delete(instance, family, routed);
            }
        }
        Ok(())
    }

    /// True if the rules are installed, according to `nft` and `ip`.
    ///
    /// # Errors
    /// Fails if `nft` does not tell: it cannot be run, or the kernel does not answer it.
    pub(crate) fn are_installed(&self, instance: &Instance) -> io::Result<bool> {
        match run("nft", &["list", "table", "inet", &instance.table()]) {
            // A list takes more lines than the rules do, if it breaks long sets.
            Ok(listed) if statements(&listed) < statements(&self.nft(instance)) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.to_string().contains("No such file") => return Ok(false),
            Err(error) => return Err(error),
        }
        let (local, into) = self.marks();
        let wanted = [(local, instance.local()), (into, instance.device())];
        let is_there = |family| {
            // A machine without this IP version has no rules for it.
            let Ok(text) = run("ip", &[family, "rule", "show"]) else { return true };
            let found: Vec<_> = text.lines().map(mark_and_table).collect();
            let mut wanted = wanted.iter().filter(|(is_wanted, _)| *is_wanted);
            wanted.all(|(_, routed)| found.contains(&(Some(routed.mark), Some(routed.table))))
        };
        Ok(VERSIONS.into_iter().all(is_there))
    }

    /// Removes the rules. It is not an error if they are missing.
    ///
    /// # Errors
    /// Fails if `nft` is not installed, or with the message of `nft` if the table cannot be deleted.
    pub fn remove(&self, instance: &Instance) -> io::Result<()> {
        // First the rules that mark packets, then the routes of marked packets.
        let table = instance.table();
        let removed = nft(&[], &format!("add table inet {table}\ndelete table inet {table}\n"));
        self.forget_routes(instance);
        removed
    }

    /// Removes the rules of a gateway that has failed, except those that refuse new connections, if there are any.
    ///
    /// # Errors
    /// Fails if `nft` is not installed, or with the message of `nft` if the rules cannot be replaced or deleted.
    pub(crate) fn fall_back(&self, instance: &Instance) -> io::Result<()> {
        let is_there = run("nft", &["list", "table", "inet", &instance.table()]).is_ok();
        match self.guard(instance) {
            Some(guard) if is_there => {
                let replaced = nft(&[], &guard);
                self.forget_routes(instance);
                replaced
            }
            _ => self.remove(instance),
        }
    }

    fn forget_routes(&self, instance: &Instance) {
        for family in VERSIONS {
            delete(instance, family, instance.local());
            delete(instance, family, instance.device());
            let table = instance.local().table;
            let _ = ip(&words(&format!("{family} route flush table {table}")));
        }
    }
}

/// Deletes a routing rule until none is left: each start of a gateway that was later killed may have added one.
fn delete(instance: &Instance, family: &str, routed: Routed) {
    let mut max = 16;
    while max > 0 && ip(&instance.rule(family, "del", routed)).is_ok() {
        max -= 1;
    }
}

/// True if this machine has the IP version of this option of `ip`.
fn is_there(family: &str) -> bool {
    has_family(if family == "-6" { Domain::IPV6 } else { Domain::IPV4 })
}

fn in_use(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, message)
}

fn no_collision(instance: &Instance, other: Option<Instance>) -> io::Result<()> {
    let other = other.filter(|other| instance.collides_with(other));
    other.map_or(Ok(()), |other| {
        let (name, other) = (instance.name(), other.name());
        Err(in_use(format!("the names `{name}` and `{other}` give the same packet marks: change `name` in one file")))
    })
}

/// The mark and the table of a routing rule, from the output of `ip rule show`.
fn mark_and_table(line: &str) -> (Option<u32>, Option<u32>) {
    let after = |word: &str| line.split_whitespace().skip_while(|&it| it != word).nth(1);
    // A mark may be followed by a slash and a mask.
    let mark =
        after("fwmark").and_then(|mark| u32::from_str_radix(mark.split('/').next()?.strip_prefix("0x")?, 16).ok());
    (mark, after("lookup").and_then(|table| table.parse().ok()))
}

fn is_no_one_elses(instance: &Instance, line: &str) -> io::Result<()> {
    let (mark, table) = mark_and_table(line);
    for routed in [instance.local(), instance.device()] {
        let is_ours = (mark, table) == (Some(routed.mark), Some(routed.table));
        if !is_ours && (mark == Some(routed.mark) || table == Some(routed.table)) {
            return Err(in_use(format!(
                "another program's routing rule has mark {:#x} or table {}: `{}`; change `name` in the file",
                routed.mark,
                routed.table,
                line.trim()
            )));
        }
    }
    Ok(())
}

/// The value of rp_filter for the device. Its packets have clients' addresses, which are routed elsewhere. The kernel
/// uses the greater of the device's setting and the host's: 1 is strict, and 2, loose, accepts any route.
pub(super) const LOOSE: u8 = 2;

/// The routes into the uplink's device, by IP version.
pub(super) fn into(instance: &Instance, device: &str) -> [(&'static str, Vec<String>); 2] {
    let table = instance.device().table;
    VERSIONS.map(|family| (family, words(&format!("{family} route replace default dev {device} table {table}"))))
}

impl Instance {
    /// Sets the routes and settings of the uplink's device. Returns messages about steps that failed.
    pub(crate) fn route_into(&self, device: &str) -> Vec<String> {
        let mut lacks = Vec::new();
        for (family, words) in into(self, device).into_iter().filter(|(family, _)| is_there(family)) {
            if let Err(error) = ip(&words) {
                lacks.push(format!("IPv{} is not accelerated: {error}", &family[1..]));
            }
        }
        let path = |of: &str| format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
        let is = |of: &str| std::fs::read_to_string(path(of)).ok().and_then(|text| text.trim().parse::<u8>().ok());
        lacks.extend(loosened(device, is("all").max(is(device)), |value| std::fs::write(path(device), value)).err());
        lacks
    }
}

/// Sets the device's filter to [`LOOSE`] if the value that is `used` is strict. If /proc/sys is read-only, net.ipv4.conf.default may
/// already have given the device the right value.
fn loosened(device: &str, used: Option<u8>, set: impl FnOnce(String) -> io::Result<()>) -> Result<(), String> {
    if used != Some(1) {
        return Ok(());
    }
    set(LOOSE.to_string()).map_err(|error| {
        format!(
            "connections older than the gateway may break: net.ipv4.conf.{device}.rp_filter cannot be set to {LOOSE}: {error}"
        )
    })
}

fn nft(options: &[&str], script: &str) -> io::Result<()> {
    feed(program("nft").args(options).args(["-f", "-"]), "nft", script)
}

/// Runs a program with this input.
fn feed(command: &mut Command, name: &str, input: &str) -> io::Result<()> {
    let mut child = start(command.stdin(Stdio::piped()), name)?;
    // A program that fails may not read all of it, and then says why.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    finish(name, child).and(written)
}

fn ip(words: &[String]) -> io::Result<()> {
    run("ip", &words.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
}

/// Number of lines inside chains, without comments.
fn statements(text: &str) -> usize {
    const OTHERS: [&str; 6] = ["}", "#", "add ", "delete ", "table ", "chain "];
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !OTHERS.iter().any(|other| line.starts_with(other))).count()
}

fn run(name: &str, words: &[&str]) -> io::Result<String> {
    let child = start(program(name).args(words).stdin(Stdio::null()), name)?;
    finish(&format!("{name} {}", words.join(" ")), child)
}

fn start(command: &mut Command, name: &str) -> io::Result<std::process::Child> {
    let package = if name == "ip" { "iproute2" } else { "nftables" };
    // Ctrl-C at the terminal is for the gateway. If it also ended the `nft` that removes the rules, they would stay.
    let spawned = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| io::Error::new(error.kind(), format!("{name} ({package}) cannot be run: {error}")))
}

fn finish(what: &str, child: std::process::Child) -> io::Result<String> {
    let output = child.wait_with_output()?;
    succeeded(what, &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the two settings is strict makes no difference: the device's is the one to change.
    #[test]
    fn a_strict_filter_that_stays_is_told() {
        let read_only = |_| Err(io::Error::other("read-only"));
        for fine in [None, Some(0), Some(2)] {
            assert_eq!(loosened("bentpipe0", fine, read_only), Ok(()));
        }
        let said = "connections older than the gateway may break: net.ipv4.conf.bentpipe0.rp_filter cannot be set to 2: read-only";
        assert_eq!(loosened("bentpipe0", Some(1), read_only), Err(said.to_owned()));
        let mut set = None;
        let kept = loosened("bentpipe0", Some(1), |value| {
            set = Some(value);
            Ok(())
        });
        assert_eq!((kept, set.as_deref()), (Ok(()), Some("2")));
    }

    /// A program that fails before it has read all of its input. More fits into no pipe.
    #[test]
    fn a_program_that_reads_nothing_says_why() {
        let mut refusing = Command::new("sh");
        refusing.args(["-c", "exec <&-; echo not permitted >&2; exit 1"]);
        let error = feed(&mut refusing, "sh", &" ".repeat(2 << 20)).expect_err("it fails");
        assert_eq!(error.to_string(), "sh: not permitted");
    }

    #[test]
    fn names_that_collide_are_found() {
        let near = Instance::new("near");
        let other = (0..).map(|n| format!("box{n}")).find(|name| near.collides_with(&Instance::new(name)));
        let other = other.expect("there are more names than slots");
        assert!(no_collision(&near, Instance::of_table("bentpipe_near")).is_ok(), "what it left itself");
        assert!(no_collision(&near, Instance::of_table("bentpipe_far")).is_ok());
        assert!(no_collision(&near, Instance::of_table("filter")).is_ok());
        let error = no_collision(&near, Instance::of_table(&format!("bentpipe_{other}"))).expect_err("the same slot");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&format!("`near` and `{other}`")), "{error}");
    }

    #[test]
    fn rules_of_others_are_found() {
        let near = Instance::new("near");
        let Routed { mark, table, preference } = near.local();
        for line in [
            "0:\tfrom all lookup local".to_owned(),
            format!("{preference}:\tfrom all fwmark {mark:#x} lookup {table}"),
            "100:\tfrom 10.0.0.0/8 fwmark 0xca6c/0xffff lookup 51820".to_owned(),
        ] {
            assert!(is_no_one_elses(&near, &line).is_ok(), "{line}");
        }
        for line in [
            format!("100:\tfrom all fwmark {mark:#x} lookup 51820"),
            format!("100:\tfrom all fwmark {mark:#x}/0xffffffff lookup main"),
            format!("100:\tfrom 10.0.0.0/8 lookup {}", near.device().table),
        ] {
            let error = is_no_one_elses(&near, &line).expect_err(&line);
            assert!(error.to_string().contains("another program's routing rule"), "{error}");
        }
    }
}
