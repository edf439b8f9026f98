//! Text as a packet script: read and played, or refused with a place; never a panic.

use bentpipe_script::host::Profile;
use bentpipe_script::{Options, run};

pub(crate) fn run_script(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for profile in [Profile::Linux, Profile::FreeBsd, Profile::Rfc] {
        if let Err(mistake) = run(text, &Options::new(profile)) {
            assert!(mistake.line > 0 && mistake.column > 0, "a mistake has a place: {mistake}");
        }
    }
}
