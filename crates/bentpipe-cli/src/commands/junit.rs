//! Results as JUnit's XML, which CI systems show as tests.

use std::fmt::Write;
use std::path::Path;

use bentpipe_study::markup::escaped;
use bentpipe_study::report::write_whole;

use crate::failure::Failure;
use crate::output::Remake;

/// One test.
pub(super) struct Case {
    /// What it is about: a variant.
    pub(super) class: String,
    /// What is tested.
    pub(super) name: String,
    /// Seconds that are shown beside it: virtual time.
    pub(super) time_s: Option<f64>,
    /// Why it failed.
    pub(super) failure: Option<String>,
}

/// Writes a suite of tests.
pub(super) fn write(path: &Path, suite: &str, cases: &[Case], remake: &Remake) -> Result<(), Failure> {
    write_whole(path, text(suite, cases, remake).as_bytes()).map_err(Failure::unwritten)
}

fn text(suite: &str, cases: &[Case], remake: &Remake) -> String {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" \
         errors=\"0\" skipped=\"0\">\n    <properties>\n      <property name=\"command\" value=\"{}\"/>\n    </properties>\n",
        plain(suite),
        cases.len(),
        plain(&remake.line()),
    );
    for case in cases {
        let time = case.time_s.map(|time| format!(" time=\"{time:.3}\"")).unwrap_or_default();
        let _ = write!(text, "    <testcase classname=\"{}\" name=\"{}\"{time}", plain(&case.class), plain(&case.name));
        match &case.failure {
            None => text.push_str("/>\n"),
            Some(why) => {
                let _ = writeln!(text, ">\n      <failure message=\"{}\"/>\n    </testcase>", plain(why));
            }
        }
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Text for XML, which has no control characters.
fn plain(text: &str) -> String {
    escaped(&text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_as_ci_reads_it() {
        let case = |failure: Option<&str>| Case {
            class: "sack".into(),
            name: "x_limit > 1.5".into(),
            time_s: Some(2.5),
            failure: failure.map(str::to_owned),
        };
        let remake = Remake { bentpipe: "1", command: "bentpipe compare \"a\"\u{1b}".into(), seed: 7 };
        let text = text("geo & more", &[case(None), case(Some("sack: x_limit is 2"))], &remake);
        assert!(text.contains("<testsuite name=\"geo &amp; more\" tests=\"2\" failures=\"1\""), "{text}");
        assert!(text.contains("<testcase classname=\"sack\" name=\"x_limit &gt; 1.5\" time=\"2.500\"/>"), "{text}");
        assert!(text.contains("<failure message=\"sack: x_limit is 2\"/>"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
