use bentpipe_engine::probe::DropReason;
use bentpipe_engine::tcp::{Flags, Segment, State};
use bentpipe_engine::units::Duration;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::*;
use crate::table::ROW_GROUP;

fn events() -> Vec<Event> {
    let mut segment = Segment { seq: 1, ack: 2925, window: 73_728, len: 1460, ..Segment::new(Flags::ACK | Flags::PSH) };
    segment.sack.push(2925, 4385, 5845);
    segment.sack.push(2925, 1465, 2925);
    vec![
        Event::State { from: State::SynSent, to: State::Established },
        Event::Sent { segment, retransmission: true },
        Event::Received { segment: Segment::new(Flags::SYN) },
        Event::Window { cwnd: 14_600, ssthresh: u64::MAX, flight: 2920 },
        Event::Rtt { sample: Duration::from_millis(540), rto: Duration::from_secs(1) },
        Event::RecoveryEntered { snd_una: 2925, recover: 20_005 },
        Event::RecoveryLeft,
        Event::Timeout { snd_una: 7305, backoffs: 2 },
        Event::SpuriousTimeout,
        Event::Queue { packets: 3, bytes: 4500, average: Some(2.5) },
        Event::Queue { packets: 0, bytes: 0, average: None },
        Event::Dropped { reason: DropReason::Early },
    ]
}

fn write(path: &Path) {
    let names = vec!["link/up".to_owned(), "a \"quoted\", name".to_owned()];
    let format = Format::of(path).expect("a known ending");
    let mut columns = Columns::create(path, format, names, "seed = 7").expect("writable");
    for (i, event) in events().iter().enumerate() {
        columns.event(Time::from_nanos(i as u64), Who(i as u32 % 3), event);
    }
    assert!(!path.exists(), "nothing has the name before the end");
    columns.finish().expect("writable");
}

#[test]
fn csv_has_a_line_per_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.csv");
    write(&path);
    let text = std::fs::read_to_string(path).expect("readable");
    let expected = r##"time_ns,who,event,seq,ack,len,flags,window,sack,retransmission,stream,offset,cwnd,ssthresh,flight,rtt_ns,rto_ns,backoffs,queue_packets,queue_bytes,average,reason,from,to
0,link/up,state,,,,,,,,,,,,,,,,,,,,SYN-SENT,ESTABLISHED
1,"a ""quoted"", name",sent,1,2925,1460,P.,73728,4385-5845 1465-2925,1,,,,,,,,,,,,,,
2,#2,received,0,0,0,S,0,,,,,,,,,,,,,,,,
3,link/up,window,,,,,,,,,,14600,,2920,,,,,,,,,
4,"a ""quoted"", name",rtt,,,,,,,,,,,,,540000000,1000000000,,,,,,,
5,#2,recovery,2925,20005,,,,,,,,,,,,,,,,,,,
6,link/up,recovered,,,,,,,,,,,,,,,,,,,,,
7,"a ""quoted"", name",timeout,7305,,,,,,,,,,,,,,2,,,,,,
8,#2,spurious-timeout,,,,,,,,,,,,,,,,,,,,,
9,link/up,queue,,,,,,,,,,,,,,,,3,4500,2.5,,,
10,"a ""quoted"", name",queue,,,,,,,,,,,,,,,,0,0,,,,
11,#2,dropped,,,,,,,,,,,,,,,,,,,early,,
"##;
    assert_eq!(text, expected);
}

#[test]
fn endings_may_have_capitals() {
    assert_eq!(Format::of(Path::new("EVENTS.CSV")), Some(Format::Csv));
    assert_eq!(Format::of(Path::new("events.Parquet")), Some(Format::Parquet));
    assert_eq!(Format::of(Path::new("events.txt")), None);
}

#[test]
fn parquet_says_the_same_as_csv() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv_path, parquet_path) = (folder.path().join("events.csv"), folder.path().join("events.parquet"));
    write(&csv_path);
    write(&parquet_path);
    let reader = SerializedFileReader::new(std::fs::File::open(parquet_path).expect("readable")).expect("Parquet");
    let metadata = reader.metadata().file_metadata().key_value_metadata().expect("metadata").clone();
    assert_eq!((metadata[0].key.as_str(), metadata[0].value.as_deref()), ("run", Some("seed = 7")));
    let rows: Vec<Vec<String>> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let row = row.expect("a row");
            let cell = |field: &Field| match field {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::Long(value) => value.to_string(),
                Field::Double(value) => value.to_string(),
                other => panic!("{other:?}"),
            };
            row.get_column_iter().map(|(_, field)| cell(field)).collect()
        })
        .collect();
    let mut csv = csv::Reader::from_path(csv_path).expect("CSV");
    let expected: Vec<Vec<String>> =
        csv.records().map(|r| r.expect("a record").iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows, expected);
}

#[test]
fn large_tables_go_out_in_groups() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.parquet");
    let mut columns = Columns::create(&path, Format::Parquet, vec!["a".into()], "").expect("writable");
    let total = ROW_GROUP + 10;
    for i in 0..total {
        let average = (i % 2 == 0).then_some(i as f64);
        let event = Event::Queue { packets: i as u32, bytes: 0, average };
        columns.push(Time::from_nanos(i as u64), Who(0), &event).expect("writable");
    }
    columns.finish().expect("writable");
    let reader = SerializedFileReader::new(std::fs::File::open(path).expect("readable")).expect("Parquet");
    assert_eq!(reader.num_row_groups(), 2);
    let mut packets = 0..;
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        let column = COLUMNS.iter().position(|c| c.name == "queue_packets").expect("there is one");
        let (_, field) = row.get_column_iter().nth(column).expect("there is one");
        assert_eq!(*field, Field::Long(packets.next().expect("endless")));
    }
    assert_eq!(packets.next(), Some(total as i64));
}

#[test]
fn an_error_in_the_middle_comes_out_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut columns = Columns::create(&folder.path().join("x.csv"), Format::Csv, vec![], "").expect("writable");
    columns.error = Some(io::Error::other("disk full"));
    columns.event(Time::ZERO, Who(0), &Event::RecoveryLeft);
    assert_eq!(columns.finish().expect_err("kept").to_string(), "disk full");
}
