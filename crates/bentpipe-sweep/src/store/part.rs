//! A part: the rows of a full journal as Parquet, one line of the table for each flow of a run.

use std::fs::File;
use std::path::Path;

use bentpipe_study::output::OutputFile;
use bentpipe_study::table::{Cell, Heading, Kind, Table};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as Line};

use super::StoreError;
use crate::key::Key;
use crate::row::{FlowRow, Row};

/// A column, with functions to read and write its values.
struct Column {
    name: &'static str,
    kind: Kind,
    required: bool,
    meaning: &'static str,
}

const fn column(name: &'static str, kind: Kind, required: bool, meaning: &'static str) -> Column {
    Column { name, kind, required, meaning }
}

/// The columns in order; [`cells`] and [`read_line`] have the same order.
const COLUMNS: &[Column] = &[
    column("fingerprint", Kind::Text, true, "Fingerprint of the resolved scenario, 128 bits in hexadecimal."),
    column("seed", Kind::Integer, true, "Seed of the run; above 2^63 - 1 it is shown minus 2^64."),
    column("end_s", Kind::Real, true, "When the run ended, seconds."),
    column(
        "timed_out",
        Kind::Integer,
        true,
        "1 if the time limit ended the run while a finite flow was not done, otherwise 0.",
    ),
    column("events", Kind::Integer, true, "Events of the simulation."),
    column(
        "value",
        Kind::Real,
        false,
        "The compared quantity: time of the run's slowest transfer, seconds, or, if all flows are endless, the goodput of all, bit/s; empty if a transfer did not finish.",
    ),
    column("run_x_limit", Kind::Real, false, "Ratio of `value` to the physical limit."),
    column("flow", Kind::Text, true, "Name of the flow."),
    column(
        "flow_variant",
        Kind::Text,
        false,
        "Its TCP variant, `stp`, or `quic-` and the congestion control; empty for UDP.",
    ),
    column("bytes", Kind::Integer, true, "Payload at the receiver, bytes."),
    column(
        "time_s",
        Kind::Real,
        false,
        "From its start to the arrival of the last byte, seconds; empty if it is endless or did not finish.",
    ),
    column("goodput_bit_s", Kind::Real, false, "Payload per second, bits."),
    column(
        "x_limit",
        Kind::Real,
        false,
        "Time over the minimum time that the links allow, or maximum goodput over goodput.",
    ),
    column(
        "segments",
        Kind::Integer,
        true,
        "Segments with data, SYN or FIN sent by the end that sends the data; for UDP datagrams.",
    ),
    column("retransmissions", Kind::Integer, true, "Those that had been sent before."),
    column("timeouts", Kind::Integer, true, "Retransmission timeouts."),
    column("fast_retransmits", Kind::Integer, true, "Losses found by duplicate ACKs or SACK."),
    column("spurious_timeouts", Kind::Integer, true, "Timeouts found spurious."),
    column("max_flight_bytes", Kind::Integer, true, "Max outstanding bytes."),
    column("delay_median_s", Kind::Real, false, "Median one-way delay of its datagrams, seconds."),
    column("delay_p99_s", Kind::Real, false, "Their 99th percentile, seconds."),
    column("aborted", Kind::Text, false, "Why it was aborted."),
    column("response_median_s", Kind::Real, false, "Median time of the responses to its requests, seconds."),
    column("response_p95_s", Kind::Real, false, "Their 95th percentile, seconds."),
    column("response_p99_s", Kind::Real, false, "Their 99th percentile, seconds."),
];

/// Keys of the metadata.
const ENGINE: &str = "engine";
const RUNS: &str = "runs";
const CHECKSUM: &str = "crc32";

/// The columns of a run and a flow.
pub(crate) fn headings() -> impl Iterator<Item = Heading> {
    COLUMNS.iter().map(|c| Heading {
        name: c.name.into(),
        kind: c.kind,
        required: c.required,
        meaning: c.meaning.into(),
    })
}

/// The cells of a run's flow.
pub(crate) fn cells<'a>(row: &'a Row, flow: &'a FlowRow) -> [Cell<'a>; 25] {
    let whole = |value: u64| Cell::Integer(value as i64);
    let real = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Real);
    let text = |value: &'a Option<std::sync::Arc<str>>| value.as_deref().map_or(Cell::Empty, |t| Cell::Text(t.into()));
    [
        Cell::Text(format!("{:032x}", row.key.scenario).into()),
        whole(row.key.seed),
        Cell::Real(row.end_s),
        whole(row.timed_out.into()),
        whole(row.events),
        real(row.value),
        real(row.x_limit),
        Cell::Text((&*flow.name).into()),
        text(&flow.variant),
        whole(flow.bytes),
        real(flow.time_s),
        real(flow.goodput_bit_s),
        real(flow.x_limit),
        whole(flow.segments),
        whole(flow.retransmissions),
        whole(flow.timeouts),
        whole(flow.fast_retransmits),
        whole(flow.spurious_timeouts),
        whole(flow.max_flight_bytes),
        real(flow.delay_median_s),
        real(flow.delay_p99_s),
        text(&flow.aborted),
        real(flow.response_median_s),
        real(flow.response_p95_s),
        real(flow.response_p99_s),
    ]
}

/// Writes a part. It is synced under its final name when this returns.
pub(super) fn write(path: &Path, engine: &str, rows: &[Row]) -> Result<(), StoreError> {
    let mut sum = crc32fast::Hasher::new();
    rows.iter().for_each(|row| sum.update(&row.to_bytes()));
    let said =
        [(ENGINE, engine.to_owned()), (RUNS, rows.len().to_string()), (CHECKSUM, format!("{:08x}", sum.finalize()))];
    let columns: Vec<Heading> = headings().collect();
    let write = || {
        let mut table = Table::new(OutputFile::create(path)?, "runs", &columns, &said)?;
        for row in rows {
            for flow in &row.flows {
                table.push(&cells(row, flow))?;
            }
        }
        table.finish()?.finish_on_disk()
    };
    write().map_err(StoreError::Output)
}

/// The engine and the rows of a part.
pub(super) fn read(path: &Path) -> Result<(String, Vec<Row>), StoreError> {
    let damaged = || StoreError::Damaged { path: path.to_owned() };
    let file = File::open(path).map_err(|error| StoreError::at(path, error))?;
    // The reader of Parquet panics at some damaged pages.
    std::panic::catch_unwind(|| read_file(file)).ok().flatten().ok_or_else(damaged)
}

/// The same of an open file; `None` if it is damaged.
fn read_file(file: File) -> Option<(String, Vec<Row>)> {
    let reader = SerializedFileReader::new(file).ok()?;
    let said = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let said = |key: &str| said.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
    let (engine, sum) = (said(ENGINE)?, said(CHECKSUM)?);
    let mut rows: Vec<Row> = Vec::new();
    for line in reader.get_row_iter(None).ok()? {
        let (mut row, flow) = read_line(&line.ok()?)?;
        match rows.last_mut() {
            Some(last) if last.key == row.key => last.flows.push(flow),
            _ => {
                row.flows.push(flow);
                rows.push(row);
            }
        }
    }
    let mut found = crc32fast::Hasher::new();
    rows.iter().for_each(|row| found.update(&row.to_bytes()));
    (format!("{:08x}", found.finalize()) == sum).then_some((engine, rows))
}

/// A line of the table: a run without its flows, and one flow.
fn read_line(line: &Line) -> Option<(Row, FlowRow)> {
    let fields: Vec<&Field> = line.get_column_iter().map(|(_, field)| field).collect();
    let mut fields = fields.into_iter();
    let mut next = || fields.next();
    let text = |field: &Field| match field {
        Field::Str(text) => Some(Some(text.as_str().into())),
        Field::Null => Some(None),
        _ => None,
    };
    let real = |field: &Field| match field {
        Field::Double(value) => Some(Some(*value)),
        Field::Null => Some(None),
        _ => None,
    };
    let whole = |field: &Field| match field {
        Field::Long(value) => Some(*value as u64),
        _ => None,
    };
    let scenario = match next()? {
        Field::Str(text) => u128::from_str_radix(text, 16).ok()?,
        _ => return None,
    };
    let row = Row {
        key: Key { scenario, seed: whole(next()?)? },
        end_s: real(next()?)??,
        timed_out: whole(next()?)? == 1,
        events: whole(next()?)?,
        value: real(next()?)?,
        x_limit: real(next()?)?,
        flows: Vec::new(),
    };
    let flow = FlowRow {
        name: text(next()?)??,
        variant: text(next()?)?,
        bytes: whole(next()?)?,
        time_s: real(next()?)?,
        goodput_bit_s: real(next()?)?,
        x_limit: real(next()?)?,
        segments: whole(next()?)?,
        retransmissions: whole(next()?)?,
        timeouts: whole(next()?)?,
        fast_retransmits: whole(next()?)?,
        spurious_timeouts: whole(next()?)?,
        max_flight_bytes: whole(next()?)?,
        delay_median_s: real(next()?)?,
        delay_p99_s: real(next()?)?,
        aborted: text(next()?)?,
        // Parts of earlier versions lack these columns.
        response_median_s: next().map_or(Some(None), real)?,
        response_p95_s: next().map_or(Some(None), real)?,
        response_p99_s: next().map_or(Some(None), real)?,
    };
    Some((row, flow))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    #[test]
    fn a_part_reads_back_bit_for_bit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("part.parquet");
        let mut rows: Vec<Row> = (0..100).map(row).collect();
        // Two runs of one scenario in a row, and its flows, are two rows.
        let mut next = rows[99].clone();
        next.key.seed -= 1;
        rows.push(next);
        write(&path, "0.0.0+test", &rows).expect("writable");
        assert_eq!(read(&path).expect("whole"), ("0.0.0+test".to_owned(), rows));
    }

    #[test]
    fn damage_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("part.parquet");
        write(&path, "0.0.0+test", &(0..100).map(row).collect::<Vec<_>>()).expect("writable");
        let bytes = std::fs::read(&path).expect("readable");
        let mut missed = Vec::new();
        // Flips a bit of each 64th byte; changes of a page's statistics and padding may not change a row.
        for at in (0..bytes.len()).step_by(64) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).expect("writable");
            if let Ok((engine, rows)) = read(&path) {
                missed.push(at);
                assert!(engine != "0.0.0+test" || rows == (0..100).map(row).collect::<Vec<_>>(), "byte {at}");
            }
        }
        assert!(missed.len() < bytes.len() / 64, "{missed:?} of {}", bytes.len());
        std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("writable");
        let error = read(&path).expect_err("half a file").to_string();
        assert!(error.contains("part.parquet") && error.contains("damaged"), "{error}");
    }
}
