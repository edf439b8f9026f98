//! Names the engine that produces the numbers: the version, and in a checkout a hash of what decides them: the sources, and the
//! versions of their dependencies.
//!
//! Runs are kept by this name. While somebody changes the engine its version stays; without the hash, numbers of yesterday's
//! code would be taken for today's.

use std::path::{Path, PathBuf};

/// The crates on which a run's numbers depend.
const DECIDE: [&str; 4] = ["bentpipe-engine", "bentpipe-language", "bentpipe-sim", "bentpipe-study"];

fn main() {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let files = decisive(&here);
    println!("cargo::rerun-if-changed=build.rs");
    // By the path below `crates`: the checkout may be anywhere. Slashes on every system: the numbers are the same there.
    let name = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string().replace('\\', "/");
    let mut hashed: Vec<(String, PathBuf)> = files.into_iter().map(|path| (name(&path), path)).collect();
    hashed.sort();
    let mut hash = Fnv::new();
    for (name, path) in &hashed {
        hash.add(name.as_bytes());
        hash.add(&std::fs::read(path).expect("a source file is readable"));
    }
    let id = if hashed.is_empty() { version } else { format!("{version}+{:016x}", hash.0) };
    println!("cargo::rustc-env=BENTPIPE_ENGINE={id}");
}

/// The files of a checkout on which the numbers depend. A package from a registry has no neighbours, and its version is enough.
pub(crate) fn decisive(here: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in DECIDE {
        let sources = here.join("..").join(name).join("src");
        if sources.is_dir() {
            println!("cargo::rerun-if-changed={}", sources.display());
            gather(&sources, &mut files);
        }
    }
    // Another version of quinn sends other packets.
    let lock = here.join("../../Cargo.lock");
    if !files.is_empty() && lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    files
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            gather(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a of 64 bits.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Adds the bytes, and their count so that neighbours do not run together.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
