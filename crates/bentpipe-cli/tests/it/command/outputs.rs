//! Where outputs go: files, standard output, FIFOs and devices.

#[cfg(target_os = "linux")]
use std::process::Stdio;

use serde_json::Value;

use super::{absent, bentpipe, folder, json, ok, refused, run};

const NOWHERE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

#[test]
fn a_dash_is_standard_output_and_the_report_moves_aside() {
    let folder = folder();
    let output = run(folder.path(), &["run", "small.toml", "--trace", "-"]);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}");
    assert!(out.starts_with("time") || out.lines().next().is_some_and(|head| head.contains(',')), "{out}");
    assert!(!out.contains("x limit") && error.contains("x limit"), "{error}");
    let svg = ok(folder.path(), &["run", "small.toml", "--plot", "/dev/stdout"]);
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--trace", "-", "--plot", "-"]);
    assert!(error.contains("only one output can go to standard output"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--trace", "a.csv", "--pcap", "a.csv"]);
    assert!(error.contains("two outputs have the same name, a.csv"), "{error}");
    // The capture replaced the trace.
    let error = refused(folder.path(), 2, &["run", "small.toml", "--trace", "a.csv", "--pcap", "./a.csv"]);
    assert!(error.contains("two outputs are the same file, ./a.csv and a.csv"), "{error}");
    ok(folder.path(), &["run", "small.toml", "--trace", NOWHERE, "--pcap", NOWHERE]);
    for (begin, end, arguments) in [
        ("<?xml", "</testsuites>", &["compare", "small.toml", "--variants", "sack", "--reps", "1", "--junit", "-"][..]),
        ("#", "</details>", &["reproduce", "stp", "--table", "2", "--reps", "2", "--markdown", "-"]),
        ("<!doctype", "</html>", &["reproduce", "stp", "--table", "2", "--reps", "2", "--report", "-"]),
    ] {
        let text = ok(folder.path(), arguments);
        assert!(text.starts_with(begin) && text.trim_end().ends_with(end), "{arguments:?}: {text}");
    }
}

/// <https://no-color.org>: set and not empty.
#[cfg(target_os = "linux")]
#[test]
fn colours_are_for_terminals_that_want_them() {
    let said = |no_color: Option<&str>| {
        // `script` gives it a terminal.
        let line = format!("'{}' run none.toml", env!("CARGO_BIN_EXE_bentpipe"));
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]).env_remove("NO_COLOR").stdin(Stdio::null());
        no_color.into_iter().for_each(|value| {
            script.env("NO_COLOR", value);
        });
        String::from_utf8_lossy(&script.output().expect("bsdutils").stdout).into_owned()
    };
    for (no_color, coloured) in [(None, true), (Some(""), true), (Some("1"), false)] {
        let text = said(no_color);
        assert!(text.contains("there is no file `none.toml`"), "{text}");
        assert_eq!(text.contains('\x1b'), coloured, "{no_color:?}: {text}");
    }
}

/// Tables and sentences. A command meant to be copied is not broken into lines.
#[cfg(target_os = "linux")]
#[test]
fn lines_fit_a_terminal() {
    let folder = folder();
    for arguments in
        ["demo", "explain geo-uplink", "variants", "scenarios", "run geo-uplink", "reproduce stp --table 2 --reps 2"]
    {
        let line = format!("stty cols 80 rows 24; '{}' {arguments} 2>/dev/null", env!("CARGO_BIN_EXE_bentpipe"));
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]).current_dir(folder.path()).stdin(Stdio::null());
        let text = String::from_utf8_lossy(&script.output().expect("bsdutils").stdout).into_owned();
        let is_command = |line: &&str| line.starts_with("bentpipe 0.") || line.starts_with("scenario in full: ");
        assert!(text.lines().count() > 10, "{text}");
        for line in text.lines().filter(|line| !is_command(line)) {
            assert!(line.chars().count() <= 80, "{arguments}: {line}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let folder = folder();
    ok(folder.path(), &["run", "small.toml", "--pcap", "/dev/null"]);
    let null = std::fs::metadata("/dev/null").expect("it is there");
    assert!(null.file_type().is_char_device());
    // A folder is refused before anything runs.
    std::fs::create_dir(folder.path().join("folder.svg")).expect("writable");
    let error = refused(folder.path(), 1, &["run", "small.toml", "--plot", "folder.svg"]);
    assert!(error.contains("folder.svg could not be written: it is a folder"), "{error}");
}

#[test]
fn threads_are_bounded_by_the_cores() {
    let folder = folder();
    let many = ["compare", "small.toml", "--variants", "sack", "--reps", "2", "--json", "--threads"];
    let rows = |text: String| json(&text)["variants"].clone();
    let few = rows(ok(folder.path(), &[&many[..], &["1"]].concat()));
    assert_eq!(rows(ok(folder.path(), &[&many[..], &["1000000"]].concat())), few);
}

#[test]
fn one_of_each_is_singular() {
    let folder = folder();
    let layer = "[[layers]]\nname = \"arq\"\nover = [\"sat/forward\", \"sat/backward\"]\n\
                 channels = [{ name = \"c\", transmissions = 1, queue = \"1 packet\" }]\n";
    let link =
        "name = \"l\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"50 ms\"\n";
    let flow = "[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"10 kB\"\n";
    std::fs::write(folder.path().join("layer.toml"), format!("{link}{flow}{layer}")).expect("writable");
    let text = ok(folder.path(), &["explain", "layer.toml"]);
    assert!(text.contains("at most 1 transmission of a packet") && text.contains("FIFO up to 1 packet\n"), "{text}");
}

#[test]
fn a_plot_needs_more_than_udp() {
    let folder = folder();
    let link =
        "name = \"u\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"50 ms\"\n";
    let flow = "[[flows]]\ntype = \"udp\"\nfrom = \"A\"\nto = \"B\"\npacket = \"100 B\"\nrate = \"10 kbit/s\"\n";
    std::fs::write(folder.path().join("udp.toml"), format!("{link}{flow}")).expect("writable");
    // Before the run, not after it.
    let error = refused(folder.path(), 2, &["run", "udp.toml", "--plot", "x.svg"]);
    assert!(error.contains("no flow of this scenario has acknowledgements or a window to plot"), "{error}");
}

#[test]
fn an_empty_name_of_a_variant_is_called_empty() {
    let folder = folder();
    for variants in ["", "sack,", " ,sack"] {
        let error = refused(folder.path(), 2, &["compare", "small.toml", "--variants", variants]);
        assert!(error.starts_with("error: the name of a variant is empty\n  help: expected one of tahoe"), "{error}");
    }
}

#[test]
fn help_is_a_command_too() {
    let folder = folder();
    assert!(ok(folder.path(), &["help", "run"]).contains("Run a scenario once"));
}

#[test]
fn a_variant_that_never_finishes_is_marked() {
    let folder = folder();
    let arguments = ["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "2", "--set", "time_limit=1 s"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("0 (2 unfinished)"), "{table}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("2 of 2 replications did not finish: 2 at the time limit of 1 s"), "{said}");
    // No SYN arrives: the limit, an hour, has no part in it.
    let dead =
        ["compare", "small.toml", "--variants=sack", "--set", "links.sat.forward.loss=100 %", "--reps=2", "--json"];
    let output = run(folder.path(), &dead);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("did not finish: 1 aborted (retries exhausted)\n") && !said.contains("limit"), "{said}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["variants"][0]["aborted"], serde_json::json!({ "retries exhausted": 1 }));
}

#[test]
fn fail_if_judges_the_figures() {
    let folder = folder();
    let fails = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        let error = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), error, String::from_utf8(output.stdout).expect("text"))
    };
    let kept = ["run", "small.toml", "--fail-if", "x_limit > 100", "--fail-if", "data.time >= 1 h", "--json"];
    assert_eq!(fails(&kept).0, Some(0));
    let (code, error, out) =
        fails(&["run", "small.toml", "--fail-if", "time > 10 ms", "--fail-if", "goodput < 1 Gbit/s"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("data: time is ") && error.contains("(--fail-if 'goodput < 1 Gbit/s')"), "{error}");
    assert!(out.contains("x limit"), "the results are there all the same");
    // A mistake in a condition is a usage error, whether it is found before or after the run.
    let error = refused(folder.path(), 2, &["run", "small.toml", "--fail-if", "time > 8"]);
    assert!(error.contains("`time > 8 s`"), "{error}");
    let (code, error, _) = fails(&["run", "small.toml", "--fail-if", "dat.time > 8 s"]);
    assert!(code == Some(2) && error.contains("did you mean `data`?"), "{error}");
}

#[test]
fn compare_writes_tests_for_ci() {
    let folder = folder();
    let arguments = ["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "3", "--junit", "tests.xml"];
    ok(folder.path(), &arguments);
    let read = || std::fs::read_to_string(folder.path().join("tests.xml")).expect("readable");
    assert!(read().contains("tests=\"2\" failures=\"0\""), "{}", read());
    let bounds = ["--fail-if", "ratio > 0.01", "--fail-if", "sack.time > 1 h", "--fail-if", "unfinished > 0"];
    let output = run(folder.path(), &[&arguments[..], &bounds].concat());
    assert_eq!(output.status.code(), Some(1));
    // Both finish and have no unfinished runs. One has a bound on time, the other one on a ratio, which fails.
    let text = read();
    assert!(text.contains("tests=\"6\" failures=\"1\""), "{text}");
    assert!(
        text.contains("<testcase classname=\"tahoe\" name=\"ratio &gt; 0.01\"")
            && text.contains("<failure message=\"tahoe: ratio is "),
        "{text}"
    );
}

#[test]
fn completions_and_manual_pages() {
    let folder = folder();
    for (shell, words) in [("bash", "complete -o"), ("zsh", "#compdef bentpipe"), ("fish", "--command bentpipe")] {
        let text = ok(folder.path(), &["completions", shell]);
        assert!(text.contains(words) && text.contains("_BENTPIPE_COMPLETE"), "{shell}: {text}");
    }
    ok(folder.path(), &["man", "pages"]);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).expect("a page");
    assert!(page("bentpipe.1").contains("bentpipe\\-sweep(1)"), "{}", page("bentpipe.1"));
    assert!(page("bentpipe-run.1").contains("fail\\-if") && page("bentpipe-model-rates.1").contains("OC\\-N"));
}

/// The completions that bash offers at the end of this line.
#[cfg(unix)]
fn offered(folder: &std::path::Path, line: &str) -> Vec<String> {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_bentpipe"));
    let script = format!(
        "source <(bentpipe completions bash); COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _clap_complete_bentpipe bentpipe \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash = std::process::Command::new("bash");
    let path = format!("{}:{}", binary.parent().expect("a folder").display(), env!("PATH"));
    let output = bash.args(["-c", &script]).env("PATH", path).current_dir(folder).output().expect("bash");
    // The separator of the library is a vertical tab.
    String::from_utf8_lossy(&output.stdout)
        .split(['\n', '\x0b'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(unix)]
#[test]
fn shells_complete_scenarios_variants_and_files() {
    let folder = folder();
    std::fs::write(folder.path().join("geo-mine.toml"), "").expect("writable");
    std::fs::write(folder.path().join("geo.csv"), "").expect("writable");
    let offers = |line: &str| offered(folder.path(), line);
    let found = offers("bentpipe run geo-b");
    assert_eq!(found, ["geo-board", "geo-bursts"]);
    let found = offers("bentpipe run ge");
    assert!(found.contains(&"geo".to_owned()) && found.contains(&"geo-mine.toml".to_owned()), "{found:?}");
    assert!(!found.contains(&"geo.csv".to_owned()), "{found:?}");
    assert_eq!(offers("bentpipe compare geo --variants sack,linux-cu"), ["sack,linux-cubic"]);
    let found = offers("bentpipe recommend geo --hosts sc");
    assert_eq!(found, ["scenario"]);
    let found = offers("bentpipe explain geo --variant quic-b");
    assert_eq!(found, ["quic-bbr"]);
    let found = offers("bentpipe rep");
    assert_eq!(found, ["report", "reproduce"]);
    assert_eq!(offers("bentpipe reproduce tr"), ["transat"]);
}

#[test]
fn lists_as_json() {
    let folder = folder();
    let names = |arguments: &[&str], key: &str| -> Vec<String> {
        // `doctor` fails if something is missing, and still prints everything.
        let list = json(&String::from_utf8(run(folder.path(), arguments).stdout).expect("text"));
        list.as_array().expect("a list").iter().map(|one| one[key].as_str().expect("text").to_owned()).collect()
    };
    assert!(names(&["scenarios", "--json"], "name").contains(&"geo".to_owned()));
    assert!(names(&["variants", "--json"], "name").contains(&"cubic".to_owned()));
    if cfg!(target_os = "linux") {
        assert!(names(&["doctor", "--json"], "what").contains(&"user namespaces".to_owned()));
        assert!(names(&["doctor", "--json"], "what").contains(&"pasta".to_owned()));
    }
}

#[test]
fn pages_and_the_demo_as_json() {
    let folder = folder();
    let demo = json(&ok(folder.path(), &["demo", "--json"]));
    let rows = demo["results"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    let ratio = |row: &Value| row["time_s"].as_f64().expect("seconds") / row["limit_s"].as_f64().expect("seconds");
    assert!(rows.iter().all(|row| (ratio(row) - row["x_limit"].as_f64().expect("a ratio")).abs() < 1e-9), "{demo}");
    assert!(rows[0]["published_s"].is_f64() && rows[7]["published_s"].is_null(), "{demo}");
    let report = json(&ok(folder.path(), &["report", "small.toml", "--reps", "2", "--json"]));
    assert_eq!(report["page"], "small.html");
    assert_eq!(report["flows"][0]["name"], "data");
    assert!(report["recommendation"]["candidates"].as_array().is_some_and(|list| list.len() > 2), "{report}");
    std::fs::write(folder.path().join("bentpipe-lab.html"), "a page").expect("writable");
    let mut lab = bentpipe(folder.path(), &["lab", "small.toml", "--print", "--json"]);
    let lab = lab.env("BENTPIPE_PAGE", "bentpipe-lab.html").output().expect("it starts");
    let lab = json(&String::from_utf8(lab.stdout).expect("text"));
    let address = lab["address"].as_str().expect("text");
    assert!(address.starts_with("file:///") && address.contains("bentpipe-lab.html#lab="), "{address}");
    assert!(lab["browser"].is_null(), "{lab}");
}

#[test]
fn a_plot_has_the_format_of_its_name() {
    let folder = folder();
    let plot = |file: &str, more: &[&str]| {
        ok(folder.path(), &[&["run", "small.toml", "--plot", file], more].concat());
        std::fs::read(folder.path().join(file)).expect("it is there")
    };
    assert!(plot("a.png", &[]).starts_with(b"\x89PNG"));
    assert!(plot("a.pdf", &["--kind", "cwnd"]).starts_with(b"%PDF-"));
    let svg = String::from_utf8(plot("a.svg", &["--kind", "throughput"])).expect("text");
    for text in ["goodput (Mbit/s)", "limit of the links", "--plot a.svg --kind throughput</desc>"] {
        assert!(svg.contains(text), "{text} is missing in\n{svg}");
    }
    let error = refused(folder.path(), 2, &["run", "small.toml", "--plot", "b.svg", "--kind", "cdf"]);
    assert!(error.contains("one time has no distribution") && !folder.path().join("b.svg").exists(), "{error}");
    assert!(error.contains("help: `compare --kind cdf`"), "{error}");
    // Replications would be the same run.
    let error = refused(folder.path(), 2, &["run", "geo", "--plot", "b.svg", "--kind", "cdf"]);
    assert!(error.contains("help: nothing is random") && !error.contains("compare"), "{error}");
    let error = refused(folder.path(), 2, &["run", "small.toml", "--plot", "a.jpeg"]);
    assert!(error.contains("must end in .svg, .png or .pdf"), "{error}");
}

#[test]
fn each_leg_of_a_split_flow_has_a_panel() {
    let folder = folder();
    ok(folder.path(), &["run", "split-stp", "--plot", "legs.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("legs.svg")).expect("it is there");
    for leg in ["server → gateway (sack)", "gateway → terminal (stp)", "terminal → client (sack)"] {
        assert!(svg.contains(&format!("file: {leg}")), "{leg} is missing in\n{svg}");
    }
}

#[test]
fn variants_are_curves_of_one_plot() {
    let folder = folder();
    let compare = ["compare", "small.toml", "--variants", "sack,tahoe", "--reps", "3", "--plot", "-"];
    let times = ok(folder.path(), &compare);
    for text in ["3 replications", "time of the slowest transfer (s)", "sack\n", "tahoe\n"] {
        assert!(times.contains(text), "{text:?} is missing in\n{times}");
    }
    for (kind, text) in [("sequence", "lost, "), ("cwnd", "bandwidth-delay"), ("queue", " dropped"), ("rtt", "round")] {
        let svg = ok(folder.path(), &[&compare[..], &["--kind", kind]].concat());
        assert!(svg.contains("sack") && svg.contains("tahoe") && svg.contains(text), "{kind}:\n{svg}");
    }
}

#[test]
fn a_reader_that_goes_ends_the_command_quietly() {
    let folder = folder();
    let days = |output: &'static str| [&["run", "small.toml", output, "-"], &super::ENDLESS[..]].concat();
    for arguments in [
        vec!["run", "small.toml", "--pcap", "-"],
        vec!["run", "small.toml", "--plot", "-"],
        // Like `head`: the rest of a long run is not read.
        days("--trace"),
        days("--pcap"),
        vec!["--help"],
        vec!["reference"],
    ] {
        // The reader is gone before the command starts, so the result does not depend on which of them is faster.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = bentpipe(folder.path(), &arguments).stdout(writer).output().expect("it runs");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.code(), error.contains("error")),
            (Some(super::CLOSED), false),
            "{arguments:?}: {error}"
        );
    }
}

/// `ulimit -f` counts blocks of 1024 bytes. The signal that the kernel sends beyond it would end the process, and leave the unfinished
/// file.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_file_sizes_is_an_error_that_leaves_nothing() {
    let folder = folder();
    let command = format!("ulimit -f 4; exec {} run small.toml --trace events.csv", env!("CARGO_BIN_EXE_bentpipe"));
    let output =
        std::process::Command::new("bash").args(["-c", &command]).current_dir(folder.path()).output().expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: events.csv: File too large"), "{error}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".bentpipe")), "{left:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_no_panic() {
    let folder = folder();
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    for arguments in [&["--help"][..], &["run", "small.toml"], &["run", "small.toml", "--json"]] {
        let output =
            bentpipe(folder.path(), arguments).stdout(full()).stderr(Stdio::piped()).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("error: standard output: No space left on device"), "{arguments:?}: {error}");
    }
    // The format cannot be derived from a device's name.
    for option in ["--trace", "--pcap", "--plot"] {
        let output = run(folder.path(), &["run", "small.toml", option, "/dev/full"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option}: {error}");
        assert!(error.contains("error: /dev/full: No space left on device"), "{option}: {error}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("x limit"), "the run is shown all the same");
    }
    // An error that cannot be printed is dropped.
    for (code, arguments) in [
        (2, &["run", "none.toml"][..]),
        (1, &["run", "small.toml", "--set", "time_limit=1 s"]),
        (1, &["run", "small.toml", "--fail-if", "time > 1 ms"]),
    ] {
        let output = bentpipe(folder.path(), arguments).stderr(full()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn numbers_out_of_range_are_told_what_they_may_be() {
    let folder = folder();
    for (arguments, expected) in [
        (&["run", "small.toml", "--seed", "-1"][..], "from 0 to 18446744073709551615"),
        (&["run", "small.toml", "--seed", "99999999999999999999"], "from 0 to 18446744073709551615"),
        (&["compare", "small.toml", "--variants", "sack", "--threads", "x"], "from 0 to "),
        (&["compare", "small.toml", "--variants", "sack", "--reps", "-1"], "from 1 to 1000000"),
        (&["recommend", "small.toml", "--reps", "1.5"], "expected a whole number from 2 to "),
        (
            &["compare", "small.toml", "--variants", "sack", "--reps", "4294967295"],
            "expected a whole number from 1 to 1000000",
        ),
        (&["reproduce", "stp", "--table", "x"], "expected a whole number from 0 to 255"),
        (&["verify", "small.toml", "--tolerance", "nan"], "expected a percentage"),
    ] {
        let error = refused(folder.path(), 2, arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

/// Judged once the variant is known: `linux-cubic` has the RACK that the scenario's own variant lacks.
#[test]
fn settings_without_effect_are_refused_before_the_run() {
    let folder = folder();
    for command in [&["run", "small.toml"][..], &["compare", "small.toml", "--variants", "sack"]] {
        let error = refused(folder.path(), 2, &[command, &["--set", "tcp.slow_start_exit=search"]].concat());
        assert!(error.contains("flow `data`: `slow_start_exit = \"search\"` needs"), "{error}");
    }
    let other = ["run", "small.toml", "--variant", "linux-cubic", "--set", "tcp.slow_start_exit=search"];
    ok(folder.path(), &other);
}

/// A row for the requests of both flows, and conditions on it.
#[test]
fn responses_are_shown_and_can_be_judged() {
    let folder = folder();
    let requests = "count = 2\nrequest_response = { request = \"100 B\", response = \"1 kB\", count = 3 }";
    let text = super::SMALL.replace("bytes = \"300 kB\"", requests);
    std::fs::write(folder.path().join("asks.toml"), text).expect("a file");
    let run = ["run", "asks.toml"];
    let said = ok(folder.path(), &run);
    let row = said.lines().find(|line| line.contains("6 of 6")).unwrap_or_else(|| panic!("{said}"));
    assert!(row.trim_start().starts_with("data "), "{said}");
    let failed = super::run(folder.path(), &[&run[..], &["--fail-if", "data.response_p95 > 1 ms"]].concat());
    let error = String::from_utf8_lossy(&failed.stderr);
    assert!(failed.status.code() == Some(1) && error.contains("data: response_p95 is"), "{error}");
    ok(folder.path(), &[&run[..], &["--fail-if", "data.response_p95 > 1 h"]].concat());
}

#[test]
fn conditions_on_what_is_not_there_are_refused_before_the_run() {
    let folder = folder();
    // A run of days.
    let run = [&["run", "small.toml", "--fail-if", "dota.time > 1 s"], &super::ENDLESS[..]].concat();
    let error = refused(folder.path(), 2, &run);
    assert!(
        error.contains("names something that the results do not have") && error.contains("did you mean `data`?"),
        "{error}"
    );
    let run = [&["run", "small.toml", "--fail-if", "data.response_p95 > 1 s"], &super::ENDLESS[..]].concat();
    let error = refused(folder.path(), 2, &run);
    assert!(error.contains("help: the results have no `response_p95`"), "{error}");
    let compare = ["compare", "small.toml", "--variants", "sack,tahoe", "--fail-if", "reno.time > 1 s"];
    let error = refused(folder.path(), 2, &[&compare[..], &super::ENDLESS].concat());
    assert!(error.contains("names something that the results do not have"), "{error}");
    // The first variant has no ratio, and what finishes has a time in place of a goodput.
    let single = ["compare", "small.toml", "--variants", "sack", "--fail-if", "ratio > 1"];
    let pair = ["compare", "small.toml", "--variants", "sack,tahoe", "--fail-if", "goodput < 1 Mbit/s"];
    for (compare, figure) in [(single, "ratio"), (pair, "goodput")] {
        let error = refused(folder.path(), 2, &[&compare[..], &super::ENDLESS].concat());
        assert!(error.contains(&format!("help: the results have no `{figure}`")), "{error}");
    }
    // An endless flow has no time, and datagrams have no limit. Beside others they do not count.
    const DATAGRAMS: &str = "type = \"udp\"\nrate = \"100 kbit/s\"\npacket = \"1000 B\"";
    for (flow, condition, figure) in [("greedy = true", "time > 1 s", "time"), (DATAGRAMS, "x_limit > 2", "x_limit")] {
        let text = super::SMALL.replace("bytes = \"300 kB\"", flow);
        std::fs::write(folder.path().join("long.toml"), text).expect("writable");
        let run = ["run", "long.toml", "--fail-if", condition, "--set", "time_limit=10000000 s"];
        let error = refused(folder.path(), 2, &run);
        assert!(error.contains(&format!("help: the results have no `{figure}`")), "{error}");
    }
    let both = format!("{}[[flows]]\nfrom = \"A\"\nto = \"B\"\n{DATAGRAMS}\n", super::SMALL);
    std::fs::write(folder.path().join("both.toml"), both).expect("writable");
    ok(folder.path(), &["run", "both.toml", "--fail-if", "x_limit > 100", "--fail-if", "time > 1 h"]);
    // Both would first need rights that this test may not have, or run for a while.
    #[cfg(target_os = "linux")]
    for command in [
        &["verify", "small.toml", "--fail-if", "dota.time > 1 s"][..],
        &["shell", "small.toml", "--fail-if", "dota.dropped > 1", "--", "true"],
        &["shell", "small.toml", "--fail-if", "data.time > 1 s", "--", "true"],
    ] {
        let error = refused(folder.path(), 2, command);
        assert!(error.contains("names something that the results do not have"), "{command:?}: {error}");
    }
}

#[test]
fn a_capture_that_is_not_there_is_wrong_usage() {
    let folder = folder();
    assert!(refused(folder.path(), 2, &["fit", "none.pcap"]).contains(&absent("none.pcap")));
    assert!(refused(folder.path(), 2, &["fit", "-"]).contains("cannot come from standard input"));
}

#[test]
fn what_a_table_says_is_so() {
    let folder = folder();
    // Marked packets are delivered.
    let text = ok(folder.path(), &["run", "l4s"]);
    assert!(text.contains("dropped, marked") && text.contains(" marked "), "{text}");
    let text = ok(folder.path(), &["run", "small.toml"]);
    assert!(
        !text.contains("marked") && text.contains("\nx limit: time over the minimum time that the links allow.\n"),
        "{text}"
    );
    // A flow without a time has another ratio: the rate that the links allow over its own.
    let said = |sets: &[&str]| {
        let output = run(folder.path(), &[&["run", "small.toml"], sets].concat());
        assert_eq!(output.status.code(), Some(1));
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    };
    let text = said(&["--set", "time_limit=1 s"]);
    assert!(text.contains("allow; without a time, the goodput that they allow over the flow's."), "{text}");
    assert!(text.contains("did not finish within the time limit of 1 s\n  help: --set time_limit='"), "{text}");
    assert!(text.contains("\ndelivered, dropped, max queue: packets.\n"), "{text}");
    // No SYN arrives, and nothing can happen after the last one. The limit of one hour plays no part.
    let text = said(&["--set", "links.sat.forward.loss=100 %", "--set", "tcp.profile=linux"]);
    assert!(text.contains("the flow `data` was aborted") && !text.contains("time limit"), "{text}");
    // QUIC ends before the first answer arrives over such a path.
    let text = said(&["--variant", "quic-cubic", "--set", "links.sat.delay=20 s"]);
    assert!(text.contains("was aborted: idle timeout\n  help: one end received nothing for 30 s"), "{text}");
    assert!(text.contains("; the path's round trip is 40 s\n"), "{text}");
    let text = said(&["--set", "time_limit=1 s", "--set", "flows.data.start=5 s"]);
    assert!(text.contains("the flow `data` begins at 5 s, after the time limit of 1 s"), "{text}");
}

#[test]
fn a_recommendation_says_at_once_what_it_cannot() {
    let folder = folder();
    let error = refused(folder.path(), 2, &["recommend", "small.toml", "--size", "5"]);
    assert!(error.contains("--size: `5` has no unit") && !error.contains("--set"), "{error}");
    let error = refused(folder.path(), 2, &["recommend", "small.toml", "--size", "1 TB"]);
    assert!(error.contains("the time limit is 3600 s") && error.contains("help: --set time_limit='"), "{error}");
}
