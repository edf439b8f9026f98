//! `bentpipe lab`: the simulator's page in a browser, with a scenario in its address.

use std::env;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bentpipe_io::note;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use crate::args::{Lab, World};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs};
use crate::source;

const PAGE: &str = "bentpipe-lab.html";

/// Max bytes of an experiment and max length of a fragment that the page takes (`lab/src/share.ts`).
const MAX_BYTES: usize = 4_000_000;
const MAX_FRAGMENT: usize = 1 << 21;

/// The environment variable that names the page. The Python package sets it: its command's executable is Python's.
const NAMED: &str = "BENTPIPE_PAGE";

/// `xdg-open` is not one of them: it drops what follows the `#` of a file's address.
const BROWSERS: &[&str] = &[
    "x-www-browser",
    "firefox",
    "firefox-esr",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "brave-browser",
    "microsoft-edge",
    "epiphany",
];

pub(crate) fn lab(args: &Lab) -> Result<End, Failure> {
    let named = || env::var_os(NAMED).filter(|named| !named.is_empty()).map(PathBuf::from);
    let page = page(args.page.clone().or_else(named))?;
    let fragment = match &args.file {
        Some(file) => {
            let world = World { file: file.clone(), sets: args.sets.clone(), seed: args.seed };
            fragment(source::load(&world, &mut Inputs::default())?.to_toml())?
        }
        None => String::new(),
    };
    let address = address(&page) + &fragment;
    let browser = if args.print { None } else { open(&address) };
    match &browser {
        _ if args.json => output::print_json(&Json { page: page.display().to_string(), address, browser })?,
        Some(browser) => note!("opened {} in {browser}", page.display()),
        None => output::print(&format!("{address}\n"))?,
    }
    Ok(End::Done)
}

#[derive(Serialize)]
struct Json {
    page: String,
    address: String,
    /// The browser in which the page was opened, if any.
    browser: Option<String>,
}

/// The page's file, absolute.
fn page(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let beside = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let places = match given {
        Some(page) => vec![page],
        None => {
            let from_exe =
                beside.iter().flat_map(|folder| ["", "../share/bentpipe", "../../out"].map(|to| folder.join(to)));
            from_exe.chain([PathBuf::from("out")]).map(|folder| folder.join(PAGE)).collect()
        }
    };
    // Windows' `canonicalize` has a form that is not for people.
    let full = |place: &PathBuf| if cfg!(windows) { std::path::absolute(place) } else { place.canonicalize() };
    places.iter().find_map(|place| full(place).ok().filter(|place| place.is_file())).ok_or_else(|| {
        let searched: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Failure::usage(
            format!("there is no page at {}", searched.join(", ")),
            Some(
                "archives and packages of a release have it, `make lab` in the repository builds it, and --page names it"
                    .to_owned(),
            ),
        )
    })
}

/// The page's address.
fn address(page: &Path) -> String {
    let mut address = "file://".to_owned();
    if cfg!(windows) {
        encode(windows_path(&page.to_string_lossy()).as_bytes(), b"/:", &mut address);
    } else {
        encode(page.as_os_str().as_encoded_bytes(), b"/", &mut address);
    }
    address
}

/// An experiment as the page writes it into its address (`lab/src/share.ts`).
#[derive(Serialize)]
struct Shared {
    toml: String,
}

/// The part of the address after the `#`, which browsers send to nobody, with a scenario in it.
fn fragment(toml: String) -> Result<String, Failure> {
    let text = serde_json::to_vec(&Shared { toml }).map_err(Failure::broken)?;
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&text).map_err(Failure::broken)?;
    let fragment = format!("#lab={}", URL_SAFE_NO_PAD.encode(packed.finish().map_err(Failure::broken)?));
    if text.len() > MAX_BYTES || fragment.len() > MAX_FRAGMENT {
        let message = format!(
            "the scenario is too long for the page's address: {} bytes, {} when packed; expected at most {MAX_BYTES} and {MAX_FRAGMENT}",
            text.len(),
            fragment.len()
        );
        return Err(Failure::usage(
            message,
            Some("start `bentpipe lab` without it, and paste it into the page".to_owned()),
        ));
    }
    Ok(fragment)
}

/// A full path of Windows, such as `\\?\C:\page.html`, as it stands in an address: `/C:/page.html`, or `host/share/page.html`.
fn windows_path(path: &str) -> String {
    let path = path.strip_prefix(r"\\?\").unwrap_or(path).replace('\\', "/");
    match path.strip_prefix("UNC/").or_else(|| path.strip_prefix("//")) {
        Some(shared) => shared.to_owned(),
        None => format!("/{path}"),
    }
}

/// Appends bytes as RFC 3986 §2.1 writes them.
fn encode(bytes: &[u8], kept: &[u8], to: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            to.push(char::from(byte));
        } else {
            write!(to, "%{byte:02X}").expect("a string takes everything");
        }
    }
}

/// Opens the address in the first browser that starts, and returns its name.
fn open(address: &str) -> Option<String> {
    let chosen = env::var("BROWSER").unwrap_or_default();
    // Without a display a browser would not start, or only in the terminal. Outside Linux none is known.
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    let known = BROWSERS.iter().copied().filter(|_| has_display);
    // Windows' paths contain colons.
    let between = if cfg!(windows) { ';' } else { ':' };
    let mut browsers = chosen.split(between).filter(|name| !name.is_empty()).chain(known);
    let starts = |name: &&str| {
        let mut command = Command::new(name);
        let started = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if started.as_ref().is_err_and(|error| error.kind() == ErrorKind::ArgumentListTooLong) {
            note!("the address has {} characters, too many to give it to {name}", address.len());
        }
        started.is_ok()
    };
    browsers.find(starts).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn an_address_has_only_the_letters_that_it_may() {
        assert_eq!(address(Path::new("/tmp/a b/ü#.html")), "file:///tmp/a%20b/%C3%BC%23.html");
    }

    /// The page unpacks it with `deflate-raw` (RFC 1951).
    #[test]
    fn a_fragment_holds_the_scenario() {
        let fragment = fragment("name = \"ü\"\n".repeat(1000)).unwrap_or_else(|_| panic!("short enough"));
        let packed = fragment.strip_prefix("#lab=").and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).expect("base64");
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("deflate");
        assert_eq!(text, format!("{{\"toml\":\"{}\"}}", "name = \\\"ü\\\"\\n".repeat(1000)));
        assert!(fragment.len() < 200, "{fragment}");
    }

    #[test]
    fn a_scenario_that_the_page_would_refuse_is_refused() {
        let around = r#"{"toml":""}"#.len();
        assert!(fragment("a".repeat(MAX_BYTES - around)).is_ok());
        let Err(Failure::Usage(message, Some(_))) = fragment("a".repeat(MAX_BYTES - around + 1)) else {
            panic!("refused")
        };
        assert!(message.contains("4000001 bytes") && message.contains("at most 4000000"), "{message}");
        // Random letters do not get shorter.
        let mut state = 1_u64;
        let mut random = || {
            state = state * 48271 % 2_147_483_647;
            char::from(48 + (state % 64) as u8)
        };
        let Err(Failure::Usage(message, _)) = fragment((0..3_000_000).map(|_| random()).collect()) else {
            panic!("refused")
        };
        assert!(message.contains("2097152"), "{message}");
    }

    #[test]
    fn paths_of_windows_become_addresses() {
        let pairs = [
            (r"\\?\C:\Users\a b\page.html", "/C:/Users/a b/page.html"),
            (r"\\?\UNC\host\share\page.html", "host/share/page.html"),
            (r"C:\page.html", "/C:/page.html"),
        ];
        pairs.iter().for_each(|(path, address)| assert_eq!(windows_path(path), *address));
    }

    #[test]
    fn a_page_that_is_not_there_is_named_with_its_remedy() {
        let Err(Failure::Usage(message, Some(help))) = page(Some("/no/such.html".into())) else { panic!("refused") };
        assert!(message.contains("/no/such.html") && help.contains("make lab"), "{message} {help}");
    }
}
