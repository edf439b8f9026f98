//! The `stp` paper: which of its results are confirmed, and at which error rates.

use bentpipe_papers::reproduce::{Options, stp};
use bentpipe_papers::{Row, Verdict};

fn reproduce(options: Options) -> Vec<Row> {
    stp(&options, &|_, _, _| ()).expect("nothing asks to stop")
}

fn row<'r>(rows: &'r [Row], id: &str) -> &'r Row {
    rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"))
}

#[test]
fn the_printed_axis_is_not_borne_out_and_the_shape_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = reproduce(Options { reps: 40, out_dir: Some(folder.path().into()), ..Options::default() });
    // Without errors nothing is random: both goodputs and their ratio match.
    for id in ["S-T01/STP/0", "S-T01/TCP/0", "S-T02/0", "S-C01", "S-C02", "S-C03", "S-C04", "S-C05"] {
        assert_eq!(row(&rows, id).verdict, Verdict::Match, "{id}");
    }
    // At the highest error rate all transfers are aborted, in the paper and here.
    for id in ["S-T01/STP/1e-4", "S-T01/TCP/1e-4", "S-T02/1e-4", "S-C11", "S-C13", "S-E08"] {
        assert_eq!(row(&rows, id).verdict, Verdict::Match, "{id}");
    }
    // Below it, the printed goodputs need higher error rates than the printed ones.
    for id in ["S-T01/TCP/1e-8", "S-T01/TCP/1e-6"] {
        let row = row(&rows, id);
        assert!(row.ratio.is_some_and(|ratio| ratio > 5.0), "{row:?}");
        assert!(row.why.contains("times the printed one"), "{row:?}");
    }
    // The ratio hardly grows at the printed rates. It does with the losses of Eb/N0 that table 1 needs.
    assert_eq!(row(&rows, "S-C12").verdict, Verdict::Shape, "{:?}", row(&rows, "S-C12"));
    for ending in ["svg", "csv"] {
        let text = std::fs::read_to_string(folder.path().join(format!("S-F03.{ending}"))).expect("it is written");
        assert!(text.contains("face value") && text.contains("printed"), "{ending}");
    }
    assert!(rows.iter().all(|row| !row.why.is_empty()), "each verdict has its reason");
}

#[test]
fn results_depend_on_the_seed_alone() {
    let run = |seed, threads| reproduce(Options { table: Some(1), reps: 4, seed, threads, ..Options::default() });
    assert_eq!(run(1, 1), run(1, 4));
    assert_ne!(run(1, 1), run(2, 1));
}
