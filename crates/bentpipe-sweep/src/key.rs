//! The key of a run: scenario, seed and engine.

use std::fmt;

use bentpipe_study::scenario::Scenario;
use sha2::{Digest, Sha256};

/// The engine of this program: its version, and in a checkout a hash of its sources and of its dependencies' versions. Runs of
/// another engine do not count.
pub const ENGINE: &str = env!("BENTPIPE_ENGINE");

/// The name of a run of [`ENGINE`]. Equal keys have equal results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Fingerprint of the resolved scenario, see `fingerprint`.
    pub scenario: u128,
    /// The seed of all draws.
    pub seed: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.scenario, self.seed)
    }
}

/// The scenario's text from which the fingerprint is made: resolved, so that two spellings of a scenario are equal; without
/// its description, which changes no result; and without its seed, which is the other half of a key.
pub(crate) fn canonical(scenario: &Scenario) -> String {
    let plain = Scenario { description: String::new(), source: None, ..scenario.with_seed(0) };
    plain.to_toml()
}

/// The first 128 bits of SHA-256 of the canonical text.
pub(crate) fn fingerprint(canonical: &str) -> u128 {
    let digest = Sha256::digest(canonical.as_bytes());
    let first: [u8; 16] = digest.as_slice()[..16].try_into().expect("SHA-256 has 32 bytes");
    u128::from_be_bytes(first)
}

#[cfg(test)]
#[allow(dead_code, reason = "only its list of files is tested")]
#[path = "../build.rs"]
mod build;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"250 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";

    fn of(text: &str, sets: &[(&str, &str)]) -> u128 {
        let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        fingerprint(&canonical(&Scenario::parse(text, "t.toml", &sets).expect("a scenario")))
    }

    #[test]
    fn what_changes_no_number_changes_no_key() {
        let plain = of(TEXT, &[]);
        assert_eq!(plain, of(TEXT, &[("description", "words"), ("source", "a paper"), ("seed", "7")]));
        assert_eq!(plain, of(TEXT, &[("links.sat.delay", "0.25 s")]), "two ways to write 250 ms");
        assert_eq!(plain, of(&TEXT.replace("rate", "# a comment\nrate"), &[]));
        assert_ne!(plain, of(TEXT, &[("links.sat.delay", "251 ms")]));
        assert_ne!(plain, of(TEXT, &[("links.sat.loss", "1 %")]));
    }

    #[test]
    fn the_digest_is_sha_256() {
        // FIPS 180-4's example: SHA-256 of "abc" begins with ba7816bf 8f01cfea 414140de 5dae2223.
        assert_eq!(format!("{:032x}", fingerprint("abc")), "ba7816bf8f01cfea414140de5dae2223");
        assert!(ENGINE.starts_with(env!("CARGO_PKG_VERSION")));
    }

    /// Runs with another version of quinn or another certificate are other runs.
    #[test]
    fn the_engine_is_named_by_all_that_decides_its_numbers() {
        let files = build::decisive(std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
        let has = |end: &str| files.iter().any(|file| file.ends_with(end));
        assert!(has("bentpipe-sim/src/lib.rs") && has("bentpipe-engine/src/lib.rs"), "{files:?}");
        assert!(has("credentials/certificate.der"), "{files:?}");
        assert!(has("Cargo.lock"), "{files:?}");
    }
}
