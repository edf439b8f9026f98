//! What is expected of a tree of scripts: which hosts its scripts mean, which features do not exist here and why, and
//! which scripts may fail, each with the sentence of an RFC that allows the difference.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use thiserror::Error;

use crate::host::Profile;
use crate::run::{Options, Verdict, run};

/// An expectation file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// The tree's name, for people.
    pub tree: String,
    /// A path by which a folder is known to be this tree.
    pub marker: String,
    /// Hosts; the last one that fits a script counts.
    host: Vec<HostFor>,
    /// Features that do not exist here, each with the reason.
    #[serde(default)]
    unsupported: BTreeMap<String, String>,
    /// Scripts that may fail.
    #[serde(default)]
    allowed: Vec<Allowed>,
    /// Scripts that are wrong by themselves.
    #[serde(default)]
    mistaken: Vec<Mistaken>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFor {
    /// Patterns of paths; none for all.
    #[serde(default)]
    scripts: Vec<String>,
    /// A text that the script contains.
    contains: Option<String>,
    profile: String,
    /// Names that `#ifdef` finds; without it the system's.
    define: Option<Vec<String>>,
    /// Settings that the scripts take for granted.
    #[serde(default)]
    sysctl: Vec<String>,
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

/// What is wrong with an expectation file.
#[derive(Debug, Error)]
pub enum ExpectError {
    /// It is no TOML of this form.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A value that cannot be.
    #[error("{0}")]
    Value(String),
}

/// How one script of a tree came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes, as it should.
    Passes,
    /// It fails as the file allows.
    Allowed,
    /// It needs what does not exist here.
    Unsupported(Vec<String>),
    /// It is wrong by itself, and the file says so.
    Mistaken,
    /// Other than the file says, in words.
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
    /// Scripts whose features do not exist here, and by feature; a script may need several.
    pub unsupported: u32,
    /// The same by feature.
    pub features: BTreeMap<String, u32>,
    /// Scripts that are wrong by themselves.
    pub mistaken: u32,
    /// Scripts that come out other than the file says: path and what.
    pub unexpected: Vec<(String, String)>,
    /// Of the unexpected ones: those that fail.
    pub failures: u32,
    /// Differences that count as none, with the number of scripts.
    pub notes: BTreeMap<String, u32>,
}

impl Tally {
    /// Scripts whose features exist, and per cent of them that pass.
    pub fn supported(&self) -> (u32, f64) {
        let supported = self.passes + self.allowed + self.failures;
        (supported, 100.0 * f64::from(self.passes) / f64::from(supported.max(1)))
    }
}

impl Expectations {
    /// Reads an expectation file.
    ///
    /// # Errors
    /// Keys and values that cannot be, a reason or sentence that is missing, a script named twice.
    pub fn parse(text: &str) -> Result<Self, ExpectError> {
        let this: Expectations = toml::from_str(text)?;
        let value = |message: String| Err(ExpectError::Value(message));
        if this.host.is_empty() {
            return value("no [[host]]: expected one for all scripts at least".into());
        }
        for host in &this.host {
            if Profile::named(&host.profile).is_none() {
                return value(format!("profile `{}`: expected linux, freebsd or rfc", host.profile));
            }
            if let Some(wrong) = host.sysctl.iter().find(|setting| !setting.contains('=')) {
                return value(format!("sysctl `{wrong}`: expected name=value"));
            }
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

    /// How a script of the tree is to be played.
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

    /// Plays a script of the tree and compares what comes out with the file.
    pub fn judge(&self, path: &str, text: &str, tally: &mut Tally) -> Outcome {
        let is_allowed = self.allowed.iter().any(|allowed| allowed.scripts.iter().any(|name| matches(name, path)));
        let is_mistaken = self.mistaken.iter().any(|mistaken| mistaken.scripts.iter().any(|name| matches(name, path)));
        let outcome = match run(text, &self.options(path, text)) {
            _ if is_mistaken => Outcome::Mistaken,
            Err(mistake) => Outcome::Unexpected(format!("is not understood: {mistake}")),
            Ok(played) => {
                for note in &played.notes.iter().collect::<BTreeSet<_>>() {
                    *tally.notes.entry((**note).clone()).or_default() += 1;
                }
                match (played.verdict, is_allowed) {
                    (Verdict::Passes, false) => Outcome::Passes,
                    (Verdict::Passes, true) => {
                        tally.passes += 1;
                        Outcome::Unexpected("passes, and is named as one that may fail".into())
                    }
                    (Verdict::Fails(_), true) => Outcome::Allowed,
                    (Verdict::Fails(difference), false) => {
                        tally.failures += 1;
                        let what = format!("{}: {} | {}", difference.line, difference.expected, difference.got);
                        Outcome::Unexpected(format!("fails at line {what}"))
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

    /// A reason may stand for a family of features: `TCP_INFO: *`.
    fn has_reason(&self, feature: &str) -> bool {
        self.unsupported.keys().any(|known| matches(known, feature))
    }
}

/// Whether a path fits a pattern, in which `*` stands for anything.
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
            matches!(judge("b.pkt", "nonsense"), Outcome::Unexpected(what) if what.starts_with("is not understood"))
        );
        assert_eq!((tally.passes, tally.allowed, tally.unsupported, tally.mistaken), (2, 1, 1, 1));
        assert_eq!(tally.scripts, 8);
        assert_eq!(tally.unexpected.len(), 4);
        assert_eq!(tally.supported().0, 4);
    }
}
