//! Expected results for a tree of scripts: the hosts its scripts assume, unsupported features with reasons, and
//! scripts that may fail, each with the RFC sentence that allows the difference.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use thiserror::Error;

use crate::features::has_sysctl;
use crate::host::{IpVersion, Profile};
use crate::lang::Mistake;
use crate::run::{Options, Played, Verdict, run};

/// An expectation file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// The tree's display name.
    pub tree: String,
    /// A path that identifies a folder as this tree.
    pub marker: String,
    /// Hosts; the last one that matches a script applies.
    host: Vec<HostFor>,
    /// IP versions: a script has to pass over each of them, or over the one that it chooses.
    #[serde(default)]
    ip: Vec<Ip>,
    /// Unsupported features, each with the reason.
    #[serde(default)]
    unsupported: BTreeMap<String, String>,
    /// Scripts that may fail.
    #[serde(default)]
    allowed: Vec<Allowed>,
    /// Scripts that are themselves wrong.
    #[serde(default)]
    mistaken: Vec<Mistaken>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFor {
    /// Path patterns; empty matches all.
    #[serde(default)]
    scripts: Vec<String>,
    /// Text that the script must contain.
    contains: Option<String>,
    profile: String,
    /// Names defined for `#ifdef`; by default the system's.
    define: Option<Vec<String>>,
    /// Settings that the scripts assume.
    #[serde(default)]
    sysctl: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ip {
    /// As in `--ip_version`.
    version: String,
    /// Largest packet.
    mtu: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    scripts: Vec<String>,
    difference: String,
    rfc: String,
    sentence: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistaken {
    scripts: Vec<String>,
    reason: String,
}

/// An error in an expectation file.
#[derive(Debug, Error)]
pub enum ExpectError {
    /// Not TOML of this form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// An invalid value.
    #[error("{0}")]
    Value(String),
}

/// The outcome of one script of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes, as expected.
    Passes,
    /// It fails as the file allows.
    Allowed,
    /// It needs an unsupported feature.
    Unsupported(Vec<String>),
    /// It is itself wrong, and listed as such.
    Mistaken,
    /// Not as the file expects; the message says why.
    Unexpected(String),
}

/// Counts over a tree.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// All scripts.
    pub scripts: u32,
    /// Scripts that pass.
    pub passes: u32,
    /// Scripts that fail as the file allows.
    pub allowed: u32,
    /// Scripts that need unsupported features; a script may need several.
    pub unsupported: u32,
    /// The same, per feature.
    pub features: BTreeMap<String, u32>,
    /// Scripts that are themselves wrong.
    pub mistaken: u32,
    /// Scripts with another outcome than the file expects: path and message.
    pub unexpected: Vec<(String, String)>,
    /// Those of them that fail.
    pub failures: u32,
    /// Tolerated differences, with the number of scripts.
    pub notes: BTreeMap<String, u32>,
}

impl Tally {
    /// Count of scripts whose features are all supported, and the percentage of them that pass.
    pub fn supported(&self) -> (u32, f64) {
        let supported = self.passes + self.allowed + self.failures;
        (supported, 100.0 * f64::from(self.passes) / f64::from(supported.max(1)))
    }
}

impl Expectations {
    /// Reads an expectation file.
    ///
    /// # Errors
    /// Fails on invalid keys or values, a missing reason or sentence, or a script listed twice.
    pub fn parse(text: &str) -> Result<Self, ExpectError> {
        let this: Expectations = toml::from_str(text)?;
        let value = |message: String| Err(ExpectError::Value(message));
        if this.host.is_empty() {
            return value("no [[host]]: expected one for all scripts at least".into());
        }
        for host in &this.host {
            let Some(profile) = Profile::named(&host.profile) else {
                return value(format!("profile `{}`: expected linux, freebsd or rfc", host.profile));
            };
            for setting in &host.sysctl {
                let Some((name, number)) = setting.split_once('=') else {
                    return value(format!("sysctl `{setting}`: expected name=value"));
                };
                if !has_sysctl(profile, name, number) {
                    return value(format!("sysctl `{setting}`: expected a setting that a host here has"));
                }
            }
        }
        if let Some(ip) = this.ip.iter().find(|ip| IpVersion::named(&ip.version).is_none()) {
            return value(format!("[[ip]] `{}`: expected ipv4, ipv6 or ipv4-mapped-ipv6", ip.version));
        }
        for allowed in &this.allowed {
            let has_section = allowed.rfc.starts_with("RFC ") && allowed.rfc.contains('§');
            if !has_section || allowed.sentence.len() < 20 || allowed.difference.is_empty() {
                let script = allowed.scripts.first().map_or("", String::as_str);
                return value(format!(
                    "[[allowed]] `{script}`: expected a difference, an RFC with its §, and its sentence"
                ));
            }
        }
        if let Some((feature, _)) = this.unsupported.iter().find(|(_, reason)| reason.is_empty()) {
            return value(format!("[unsupported] `{feature}`: expected a reason"));
        }
        if let Some(mistaken) = this.mistaken.iter().find(|mistaken| mistaken.reason.is_empty()) {
            return value(format!("[[mistaken]] {:?}: expected a reason", mistaken.scripts));
        }
        let mut named = BTreeSet::new();
        let all = this.allowed.iter().flat_map(|a| &a.scripts).chain(this.mistaken.iter().flat_map(|m| &m.scripts));
        for script in all {
            if !named.insert(script) {
                return value(format!("`{script}` is named twice"));
            }
        }
        Ok(this)
    }

    /// The options for a script of the tree.
    pub fn options(&self, path: &str, text: &str) -> Options {
        let fits = |host: &&HostFor| {
            let by_path = host.scripts.is_empty() || host.scripts.iter().any(|pattern| matches(pattern, path));
            by_path && host.contains.as_ref().is_none_or(|part| text.contains(part.as_str()))
        };
        let host = self.host.iter().rfind(fits).unwrap_or(&self.host[0]);
        let mut options = Options::new(Profile::named(&host.profile).expect("checked when it was read"));
        if let Some(defined) = &host.define {
            options.defined.clone_from(defined);
        }
        let pairs = host.sysctl.iter().filter_map(|setting| setting.split_once('='));
        options.sysctls = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        options
    }

    /// Runs a script over each IP version, up to the first over which it does not pass. Returns that version, if there are several.
    fn run(&self, path: &str, text: &str) -> (Option<&str>, Result<Played, Mistake>) {
        let chosen = text.lines().find_map(|line| line.trim().strip_prefix("--ip_version="));
        let mut options = self.options(path, text);
        let (mut over, mut played) = (None, None);
        for ip in self.ip.iter().filter(|ip| chosen.is_none_or(|chosen| chosen.trim() == ip.version)) {
            options.version = IpVersion::named(&ip.version);
            options.mtu = ip.mtu;
            over = Some(ip.version.as_str());
            let result = run(text, &options);
            let passes = matches!(&result, Ok(played) if played.verdict == Verdict::Passes);
            played = Some(result);
            if !passes {
                break;
            }
        }
        (over, played.unwrap_or_else(|| run(text, &options)))
    }

    /// Runs a script of the tree and compares its outcome with the file.
    pub fn judge(&self, path: &str, text: &str, tally: &mut Tally) -> Outcome {
        let is_allowed = self.allowed.iter().any(|allowed| allowed.scripts.iter().any(|name| matches(name, path)));
        let is_mistaken = self.mistaken.iter().any(|mistaken| mistaken.scripts.iter().any(|name| matches(name, path)));
        let (over, played) = self.run(path, text);
        let outcome = match played {
            _ if is_mistaken => Outcome::Mistaken,
            Err(mistake) => Outcome::Unexpected(format!("cannot be parsed: {mistake}")),
            Ok(played) => {
                for note in &played.notes.iter().collect::<BTreeSet<_>>() {
                    *tally.notes.entry((**note).clone()).or_default() += 1;
                }
                match (played.verdict, is_allowed) {
                    (Verdict::Passes, false) => Outcome::Passes,
                    (Verdict::Passes, true) => {
                        tally.passes += 1;
                        Outcome::Unexpected("passes, but is listed as one that may fail".into())
                    }
                    (Verdict::Fails(_), true) => Outcome::Allowed,
                    (Verdict::Fails(difference), false) => {
                        tally.failures += 1;
                        let what = format!("{}: {} | {}", difference.line, difference.expected, difference.got);
                        let over = over.map(|version| format!(" over {version}")).unwrap_or_default();
                        Outcome::Unexpected(format!("fails{over} at line {what}"))
                    }
                    (Verdict::Unsupported(features), _) => {
                        match features.iter().find(|feature| !self.has_reason(feature)) {
                            Some(feature) => Outcome::Unexpected(format!("needs `{feature}`, which has no reason")),
                            None => Outcome::Unsupported(features),
                        }
                    }
                }
            }
        };
        tally.scripts += 1;
        match &outcome {
            Outcome::Passes => tally.passes += 1,
            Outcome::Allowed => tally.allowed += 1,
            Outcome::Mistaken => tally.mistaken += 1,
            Outcome::Unsupported(features) => {
                tally.unsupported += 1;
                for feature in features {
                    *tally.features.entry(feature.clone()).or_default() += 1;
                }
            }
            Outcome::Unexpected(what) => tally.unexpected.push((path.to_owned(), what.clone())),
        }
        outcome
    }

    /// True if the feature has a reason. A reason may cover a family of features: `TCP_INFO: *`.
    fn has_reason(&self, feature: &str) -> bool {
        self.unsupported.keys().any(|known| matches(known, feature))
    }
}

/// True if a path matches a pattern; `*` matches anything.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "tree = 't'\nmarker = 'm'\n[[host]]\nprofile = 'rfc'\n";

    #[test]
    fn patterns() {
        for (pattern, path, fits) in [
            ("a/b.pkt", "a/b.pkt", true),
            ("a/b.pkt", "a/b.pkt2", false),
            ("*b.pkt", "a/b.pkt", true),
            ("a/*-ipv*.pkt", "a/x-ipv4.pkt", true),
            ("a/*-ipv*.pkt", "a/x.pkt", false),
            ("TCP_INFO: *", "TCP_INFO: tcpi_lost", true),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn refusals_name_what_is_missing() {
        for (more, message) in [
            (
                "[[allowed]]\nscripts = ['a']\ndifference = 'd'\nrfc = 'RFC 1'\nsentence = 'long enough to be a sentence'",
                "its §",
            ),
            ("[[allowed]]\nscripts = ['a']\ndifference = 'd'\nrfc = 'RFC 1 §2'\nsentence = ''", "its sentence"),
            ("[unsupported]\nCUBIC = ''", "expected a reason"),
            ("[[mistaken]]\nscripts = ['a']\nreason = ''", "expected a reason"),
            ("[[mistaken]]\nscripts = ['a', 'a']\nreason = 'r'", "named twice"),
            ("[[host]]\nprofile = 'bsd'", "expected linux, freebsd or rfc"),
            ("[[host]]\nprofile = 'rfc'\nsysctl = ['a']", "expected name=value"),
            ("[[ip]]\nversion = '6'", "expected ipv4, ipv6 or"),
            (
                "[[host]]\nprofile = 'linux'\nsysctl = ['net.ipv4.tcp_sack=0', 'tcp_recovry=0']",
                "sysctl `tcp_recovry=0`: expected a setting",
            ),
            ("alowed = 1", "unknown field"),
        ] {
            let text =
                if more.starts_with("alowed") { format!("{more}\n{MINIMAL}") } else { format!("{MINIMAL}{more}") };
            let error = Expectations::parse(&text).expect_err(more).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn each_way_to_come_out() {
        let text = format!(
            "{MINIMAL}[unsupported]\n'UDP' = 'no'\n[[allowed]]\nscripts = ['may.pkt']\ndifference = 'd'\nrfc = 'RFC 1 §2'\n\
             sentence = 'long enough to be a sentence'\n[[mistaken]]\nscripts = ['wrong.pkt']\nreason = 'r'\n"
        );
        let expectations = Expectations::parse(&text).expect("sound");
        let (good, bad) = (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n0 > S 0:0(0)",
        );
        let mut tally = Tally::default();
        let mut judge = |path: &str, text: &str| expectations.judge(path, text, &mut tally);
        assert_eq!(judge("a.pkt", good), Outcome::Passes);
        assert!(matches!(judge("a.pkt", bad), Outcome::Unexpected(what) if what.starts_with("fails at line 2")));
        assert_eq!(judge("may.pkt", bad), Outcome::Allowed);
        assert!(matches!(judge("may.pkt", good), Outcome::Unexpected(what) if what.starts_with("passes")));
        assert_eq!(judge("u.pkt", "0 socket(..., SOCK_DGRAM, 0) = 3"), Outcome::Unsupported(vec!["UDP".into()]));
        let unknown = judge("s.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3");
        assert!(matches!(unknown, Outcome::Unexpected(what) if what.contains("has no reason")));
        assert_eq!(judge("wrong.pkt", "nonsense"), Outcome::Mistaken);
        assert!(
            matches!(judge("b.pkt", "nonsense"), Outcome::Unexpected(what) if what.starts_with("cannot be parsed"))
        );
        assert_eq!((tally.passes, tally.allowed, tally.unsupported, tally.mistaken), (2, 1, 1, 1));
        assert_eq!(tally.scripts, 8);
        assert_eq!(tally.unexpected.len(), 4);
        assert_eq!(tally.supported().0, 4);
    }

    /// The MSS that a host offers tells the version and the MTU.
    #[test]
    fn a_script_has_to_pass_over_each_ip_version() {
        let expectations = Expectations::parse(
            "tree = 't'\nmarker = 'm'\n[[host]]\nprofile = 'linux'\n[[ip]]\nversion = 'ipv4'\n[[ip]]\nversion = 'ipv6'\nmtu = 1600\n",
        )
        .expect("sound");
        let script = |mss: u16| {
            format!(
                "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                 +0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss {mss}>\n"
            )
        };
        let mut tally = Tally::default();
        let mut judge = |text: &str| expectations.judge("a.pkt", text, &mut tally);
        let fails =
            |outcome: &Outcome, part: &str| matches!(outcome, Outcome::Unexpected(what) if what.starts_with(part));
        let both = script(1460);
        assert!(fails(&judge(&both), "fails over ipv6 at line 5"));
        assert!(fails(&judge(&script(1540)), "fails over ipv4 at line 5"));
        // A script that chooses runs over that version only.
        assert_eq!(judge(&format!("--ip_version=ipv4\n{both}")), Outcome::Passes);
        assert_eq!(judge(&format!("--ip_version=ipv6\n{}", script(1540))), Outcome::Passes);
        assert_eq!((tally.scripts, tally.passes, tally.failures), (4, 2, 2));
    }
}
