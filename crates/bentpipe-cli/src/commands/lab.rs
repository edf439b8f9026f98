//! `bentpipe lab`: the simulator's page in a browser, with a scenario in its address.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bentpipe_io::note;
use serde::Serialize;

use crate::args::{Lab, World};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs};
use crate::source;

const PAGE: &str = "bentpipe-lab.html";

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
    let scenario = match &args.file {
        Some(file) => {
            let world = World { file: file.clone(), sets: args.sets.clone(), seed: args.seed };
            Some(source::load(&world, &mut Inputs::default())?.to_toml())
        }
        None => None,
    };
    let address = address(&page, scenario.as_deref());
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

/// The page's address, with a scenario after the `#`: browsers send it to nobody.
fn address(page: &Path, scenario: Option<&str>) -> String {
    let mut address = "file://".to_owned();
    if cfg!(windows) {
        encode(windows_path(&page.to_string_lossy()).as_bytes(), b"/:", &mut address);
    } else {
        encode(page.as_os_str().as_encoded_bytes(), b"/", &mut address);
    }
    if let Some(scenario) = scenario {
        address.push_str("#toml=");
        encode(scenario.as_bytes(), b"", &mut address);
    }
    address
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
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    };
    browsers.find(starts).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn an_address_has_only_the_letters_that_it_may() {
        let address = address(Path::new("/tmp/a b/ü#.html"), Some("rate = \"2 Mbit/s\"\n"));
        assert_eq!(address, "file:///tmp/a%20b/%C3%BC%23.html#toml=rate%20%3D%20%222%20Mbit%2Fs%22%0A");
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
