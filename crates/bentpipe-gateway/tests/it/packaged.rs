//! What the package has beside the binary.

use std::path::Path;
use std::process::{Command, Output};

/// `make test-arm` names what runs the programs of another processor: the kernel itself cannot.
fn bentpipe(folder: &Path, arguments: &[&str]) -> Output {
    let runner = std::env::var("BENTPIPE_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().chain([env!("CARGO_BIN_EXE_bentpipe-gateway")]);
    let output =
        Command::new(words.next().expect("the program")).args(words).args(arguments).current_dir(folder).output();
    output.expect("it is built")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// With real keys, all examples are settings; as they are, the error names the key to replace.
#[test]
fn the_examples_are_settings() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/examples");
    let folder = tempfile::tempdir().expect("a folder");
    let keys = ["private.key", "a.key", "b.key"].map(|name| text(&bentpipe(folder.path(), &["keygen", name])));
    let mut count = 0;
    for file in std::fs::read_dir(examples).expect("it is there") {
        let file = file.expect("it is there").path();
        let example = std::fs::read_to_string(&file).expect("text");
        let name = file.file_name().and_then(|name| name.to_str()).expect("text");
        let check = |example: &str| {
            std::fs::write(folder.path().join(name), example).expect("a file");
            bentpipe(folder.path(), &["run", "--dry-run", name])
        };
        if example.contains("PUBLIC KEY") {
            let raw = check(&example);
            let said = String::from_utf8_lossy(&raw.stderr).into_owned();
            assert!(raw.status.code() == Some(2) && said.contains("PUBLIC KEY"), "{name}: {said}");
        }
        let keyed = example
            .replace("THE OTHER BOX'S PUBLIC KEY", keys[1].trim())
            .replace("ANOTHER TERMINAL'S PUBLIC KEY", keys[2].trim())
            .replace("A TERMINAL'S PUBLIC KEY", keys[1].trim());
        let shown = text(&check(&keyed));
        assert!(shown.contains("table inet bentpipe_"), "{name}: {shown}");
        count += 1;
    }
    assert_eq!(count, 5);
}

/// A page for each command, in a section apart from that of `bentpipe gateway`; completions for three shells.
#[test]
fn pages_and_completions_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    text(&bentpipe(folder.path(), &["man", "new/man"]));
    let page = |name: &str| std::fs::read_to_string(folder.path().join("new/man").join(name)).expect("it is there");
    assert!(page("bentpipe-gateway.8").contains(".TH bentpipe-gateway 8"));
    assert!(page("bentpipe-gateway.8").contains("bentpipe\\-gateway\\-run(8)"));
    assert!(page("bentpipe-gateway-run.8").contains("\\-\\-no\\-rules"));
    // The examples are in lines, as in the help.
    assert!(page("bentpipe-gateway.8").contains(".SH EXAMPLES\n.in 2n\n.nf\n  bentpipe"));
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&bentpipe(folder.path(), &["completions", shell]));
        assert!(script.contains("bentpipe-gateway") && script.contains("no-rules"), "{shell}");
    }
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let failed = bentpipe(folder.path(), &["man", "file"]);
    assert!(failed.status.code() == Some(1) && String::from_utf8_lossy(&failed.stderr).contains("file: "));
}

/// Of a hub with both shapes, a peer has the streams of `split` or the packets of `link`. `or` leaves out what has the same labels, so it
/// joins them peer by peer: by gateway, it left out all peers of `link`.
#[test]
fn the_dashboard_counts_the_peers_of_both_shapes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/bentpipe-gateway.json");
    let dashboard = std::fs::read_to_string(file).expect("text");
    let joined: Vec<_> =
        dashboard.lines().filter(|line| line.contains("\"expr\"")).filter_map(|line| line.split_once(" or ")).collect();
    assert_eq!(joined.len(), 4, "sent, received, the share of the rate, and what is offered");
    for (streams, packets) in joined {
        let last = streams.rsplit("sum by ").next().unwrap_or_default();
        assert!(last.starts_with("(gateway, peer) (rate(bentpipe_gateway_streams_"), "{streams}");
        assert!(packets.starts_with("sum by (gateway, peer) (rate(bentpipe_gateway_packet_"), "{packets}");
    }
}

/// A metric of a hub has a series for each peer: without its name in the legend, nobody knows whose a line is.
#[test]
fn the_dashboard_names_the_peers_of_each_line() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/bentpipe-gateway.json");
    let dashboard = std::fs::read_to_string(file).expect("text");
    let mut expressions = dashboard.lines().filter(|line| line.contains("\"expr\""));
    let mut legends = dashboard.lines().filter(|line| line.contains("\"legendFormat\""));
    for (expression, legend) in expressions.by_ref().zip(legends.by_ref()) {
        let is_of_all = ["sum by (gateway) (", "process_", "_late_"].iter().any(|words| expression.contains(words));
        assert!(is_of_all || legend.contains("{{gateway}} {{peer}}"), "{expression}\n{legend}");
    }
    assert!(expressions.next().is_none() && legends.next().is_none(), "each expression has a legend");
}
