//! The application of an end: writes its data into streams, and reads what arrives.

use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{QuicFlow, Workload};
use bytes::Bytes;
use quinn_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt, WriteError};

use super::repair::Coded;
use crate::pacer::Pacer;
use crate::responses::Responses;
use crate::workload::Share;

/// The content of all data: zeros.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A stream that this end writes.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    id: StreamId,
    /// Bytes not written yet.
    left: u64,
    /// True if no more data will be added.
    is_last: bool,
    finished: bool,
}

/// The application of one end.
#[derive(Debug)]
pub(super) struct App {
    workload: Workload,
    streams: u16,
    client: bool,
    start: Time,
    /// Bytes to write, and bytes to expect, until the flow is done.
    to_send: u64,
    expected: u64,
    requests_left: u32,
    /// The times of the responses to its requests.
    pub(super) responses: Responses,
    outgoing: Vec<Outgoing>,
    unordered: bool,
    /// The erasure code over the data, if any.
    coded: Option<Coded>,
    /// Bytes that the application has passed to streams.
    given: u64,
    /// Bytes read.
    pub(super) read: u64,
    /// Times of writes, for an application that writes at a rate.
    pacer: Option<Pacer>,
    /// When it next acts by itself.
    pub(super) next_action: Time,
    pub(super) acked_at: Option<Time>,
    pub(super) received_at: Option<Time>,
    /// When data was last read.
    pub(super) read_at: Option<Time>,
}

impl App {
    pub(super) fn new(quic: &QuicFlow, client: bool, start: Time, pacer: Option<Pacer>) -> Self {
        let Share { to_send, expected, requests } = Share::of(quic.workload, client);
        App {
            workload: quic.workload,
            streams: quic.streams,
            client,
            start,
            to_send,
            expected,
            requests_left: requests,
            responses: Responses::default(),
            outgoing: Vec::new(),
            unordered: quic.unordered || quic.repair.is_some(),
            coded: quic.repair.map(|repair| Coded::new(to_send.max(expected), repair.get())),
            given: 0,
            read: 0,
            pacer,
            next_action: Time::NEVER,
            acked_at: None,
            received_at: None,
            read_at: None,
        }
    }

    /// True if this end has sent and received everything.
    pub(super) fn is_done(&self) -> bool {
        (self.acked_at.is_some() || self.to_send == 0) && (self.received_at.is_some() || self.expected == 0)
    }

    /// True if this end has nothing to send.
    pub(super) fn only_receives(&self) -> bool {
        self.to_send == 0
    }

    /// True if it ends by itself.
    pub(super) fn is_finite(&self) -> bool {
        !matches!(self.workload, Workload::Greedy { .. } | Workload::Paced { total: None, .. })
    }

    /// Starts the application when the connection accepts data; with 0-RTT, this is before it is open.
    pub(super) fn begin(&mut self, now: Time, connection: &mut Connection) {
        if !self.client {
            return;
        }
        match self.workload {
            Workload::Bulk(_) if self.coded.is_some() => {
                let len = self.coded.as_ref().map_or(0, Coded::len);
                self.open(Dir::Uni, len, true, connection);
            }
            Workload::Bulk(_) | Workload::Greedy { .. } => {
                let streams = u64::from(self.streams);
                for n in 0..streams {
                    // The first streams get the remainder.
                    let left = self.to_send / streams + u64::from(n < self.to_send % streams);
                    self.open(Dir::Uni, left, true, connection);
                }
                if let Workload::Greedy { duration: Some(duration) } = self.workload {
                    self.next_action = self.start + duration;
                }
            }
            // It waits for the connection since its start.
            Workload::RequestResponse { .. } => self.ask(self.start, connection),
            Workload::Paced { .. } => {
                self.open(Dir::Uni, 0, false, connection);
                self.write_paced(now);
            }
        }
        self.write(connection);
    }

    fn open(&mut self, dir: Dir, left: u64, is_last: bool, connection: &mut Connection) {
        // The peer allows as many streams as the workload needs.
        if let Some(id) = connection.streams().open(dir) {
            self.outgoing.push(Outgoing { id, left, is_last, finished: false });
            self.given += left;
        }
    }

    fn ask(&mut self, now: Time, connection: &mut Connection) {
        self.next_action = Time::NEVER;
        if let Workload::RequestResponse { request, .. } = self.workload
            && self.requests_left > 0
        {
            self.requests_left -= 1;
            self.responses.ask(now);
            self.open(Dir::Bi, request.get(), true, connection);
        }
    }

    /// Adds the data due by now, and plans the next write.
    fn write_paced(&mut self, now: Time) {
        let (Workload::Paced { write, .. }, Some(pacer), Some(stream)) =
            (self.workload, &mut self.pacer, self.outgoing.first_mut())
        else {
            return;
        };
        self.next_action = Time::NEVER;
        while self.given < self.to_send {
            if pacer.next() > now {
                self.next_action = pacer.next();
                return;
            }
            let bytes = write.get().min(self.to_send - self.given);
            stream.left += bytes;
            self.given += bytes;
            pacer.sent(bytes as u32);
        }
        stream.is_last = true;
    }

    /// Runs the planned action. Returns true if the connection must be closed.
    pub(super) fn act(&mut self, now: Time, connection: &mut Connection) -> bool {
        if self.next_action > now {
            return false;
        }
        match self.workload {
            Workload::RequestResponse { .. } => self.ask(now, connection),
            Workload::Paced { .. } => self.write_paced(now),
            // The time of a greedy source is over: data in flight is not waited for.
            Workload::Greedy { .. } | Workload::Bulk(_) => {
                self.next_action = Time::NEVER;
                self.acked_at = Some(now);
                return true;
            }
        }
        self.write(connection);
        false
    }

    /// Writes as much as the windows allow.
    fn write(&mut self, connection: &mut Connection) {
        for stream in &mut self.outgoing {
            let mut sender = connection.send_stream(stream.id);
            while stream.left > 0 {
                let piece = stream.left.min(ZEROS.len() as u64) as usize;
                match sender.write_chunks(&mut [Bytes::from_static(&ZEROS[..piece])]) {
                    Ok(written) => stream.left -= written.bytes as u64,
                    Err(WriteError::Blocked) => break,
                    // The peer has closed the stream, so nothing more can be written.
                    Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                        (stream.left, stream.finished) = (0, true);
                    }
                }
            }
            if stream.left == 0 && stream.is_last && !stream.finished {
                stream.finished = true;
                // This fails only for a stream that is already closed.
                _ = sender.finish();
            }
        }
    }

    /// Handles an event of the connection that concerns streams.
    pub(super) fn hear(&mut self, now: Time, event: &Event, connection: &mut Connection) {
        match event {
            Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => self.write(connection),
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(*dir) {
                    self.read(now, id, connection);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(now, *id, connection),
            Event::Stream(StreamEvent::Finished { id }) => self.on_finished(now, *id),
            // The receiver of coded data needs no more.
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                _ = connection.send_stream(*id).reset(*error_code);
                self.on_finished(now, *id);
            }
            _ => {}
        }
    }

    fn on_finished(&mut self, now: Time, id: StreamId) {
        self.outgoing.retain(|stream| stream.id != id);
        let all = self.given >= self.to_send && self.outgoing.is_empty();
        if all && self.to_send > 0 && self.acked_at.is_none() {
            self.acked_at = Some(now);
        }
    }

    fn read(&mut self, now: Time, id: StreamId, connection: &mut Connection) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(!self.unordered) else { return };
        let (before, mut ended) = (self.read, false);
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match &mut self.coded {
                    Some(coded) => {
                        coded.take(chunk.offset, chunk.bytes.len() as u64);
                        self.read = coded.known;
                    }
                    None => self.read += chunk.bytes.len() as u64,
                },
                Ok(None) => {
                    ended = true;
                    break;
                }
                Err(ReadError::Blocked | ReadError::Reset(_)) => break,
            }
        }
        _ = chunks.finalize();
        if self.read > before {
            self.read_at = Some(now);
        }
        if self.read >= self.expected && self.expected > 0 && self.received_at.is_none() {
            self.received_at = Some(now);
            if self.coded.is_some() {
                // This fails only if the stream has ended.
                _ = connection.recv_stream(id).stop(VarInt::from_u32(0));
            }
        }
        if !ended {
            return;
        }
        if let Workload::RequestResponse { response, think, .. } = self.workload {
            if !self.client {
                // The answer uses the request's stream.
                self.outgoing.push(Outgoing { id, left: response.get(), is_last: true, finished: false });
                self.given += response.get();
                self.write(connection);
            } else {
                self.responses.arrived(now);
                if self.requests_left > 0 {
                    self.next_action = now + think;
                }
            }
        }
    }

    /// True if the data of this end has been acknowledged and the peer's data has arrived. The client then ends the
    /// connection.
    pub(super) fn closes(&self) -> bool {
        self.client && self.is_finite() && self.is_done()
    }
}
