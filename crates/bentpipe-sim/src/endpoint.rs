//! The ends of flows: a connection with its application, or a source or sink of datagrams.

mod application;
mod arrival;
mod extra;
mod life;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bentpipe_engine::network::EndId;
use bentpipe_engine::splice::Leg;
use bentpipe_engine::stp::{self, StpConfig};
use bentpipe_engine::tcp::{
    Abort, Connection, FIRST_BYTE, Handshake, Input, Ordinary, Output, Role, Segment, TcbCache, TcbSharing, TcpConfig,
};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, Probe, Step};
use bentpipe_study::scenario::{ConnectionId, Workload};

use crate::ends;
use crate::layer::LayerEnd;
use crate::pacer::Pacer;
use crate::packet::{self, Parcel, Store};
use crate::responses::Responses;
use crate::socket::Socket;
use crate::spoofing::{Sink, SpoofEnd};
use crate::transport::Transport;
use crate::udp::{UdpSink, UdpSource};
use crate::workload::Share;
use extra::Extra;

/// One end of a flow. All kinds are behind a pointer: a run may have a hundred thousand ends, only a few of which act
/// at a time.
#[derive(Debug)]
pub(crate) enum Endpoint {
    Tcp(Box<TcpEnd>),
    /// A connection's end that has not acted yet and equals this model.
    Late {
        model: u32,
    },
    /// An end whose connection is closed or in TIME-WAIT, and the place of what remains of it.
    Ended {
        at: u32,
    },
    #[cfg(feature = "quic")]
    Quic(Box<crate::quic::QuicEnd>),
    UdpSource(Box<UdpSource>),
    UdpSink(Box<UdpSink>),
    /// A gateway that acknowledges for the destination.
    Spoofer(Box<SpoofEnd>),
    /// The destination of its forwarded data.
    Sink(Box<Sink>),
    /// One end of a link layer: not of a flow, but packets reach it in the same way.
    Layer(Box<LayerEnd>),
    /// A socket of a gateway's box.
    Socket(Box<Socket>),
    /// One leg of a gateway that splits a flow.
    Leg {
        gateway: u32,
        leg: Leg,
    },
}

/// A connection and its application. Fields used for every event come first, so that they share cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct TcpEnd {
    /// Time of the application's next action, or of the change of its path if that comes first; [`Time::NEVER`] if there is none. The
    /// first action opens the connection.
    next_action: Time,
    /// Bytes to write, and bytes to expect, until the flow is done.
    to_send: u64,
    expected: u64,
    /// Bytes read.
    read: u64,
    /// Bytes that the application has for the connection and for which its send buffer has no room yet.
    unwritten: u64,
    /// Its number in the world.
    end: EndId,
    requests_left: u32,
    client: bool,
    opened: bool,
    /// True if a FIN follows the data. One-way openings have none.
    closes: bool,
    bare_first: bool,
    ns2_lengths: bool,
    aborted: Option<Abort>,
    /// See [`Outcome`](crate::ended::Outcome).
    acked_at: Option<Time>,
    received_at: Option<Time>,
    /// The workload, shared by ends made from one model.
    workload: Rc<Workload>,
    pub(crate) connection: Transport,
    connected_at: Option<Time>,
    /// When the application opens the connection.
    start: Time,
    /// The model from which it was made, if its connection may be kept in reduced form in TIME-WAIT.
    model: Option<u32>,
    /// What few ends have.
    extra: Option<Box<Extra>>,
    /// State shared by connections of this host to the same peer (RFC 9040), if any.
    shared: Option<Rc<RefCell<TcbCache>>>,
}

/// What a TCP end does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Send(Parcel),
    /// Nothing until then; [`Time::NEVER`] stands for no instant.
    Wait(Time),
}

impl TcpEnd {
    pub(crate) fn new(
        config: &Arc<TcpConfig>,
        role: Role,
        workload: Workload,
        end: EndId,
        start: Time,
        shared: &Rc<RefCell<TcbCache>>,
    ) -> Self {
        let connection = Transport::Tcp(Connection::new(config.clone(), role));
        Self::over(connection, config, role, workload, end, start, shared)
    }

    /// An end of an STP connection.
    pub(crate) fn stp(config: StpConfig, role: Role, workload: Workload, end: EndId, start: Time) -> Self {
        let connection = Transport::Stp(Box::new(stp::Connection::new(config, role)));
        Self::over(connection, &TcpConfig::default(), role, workload, end, start, &Rc::default())
    }

    #[allow(clippy::too_many_arguments, reason = "an end is all of this")]
    fn over(
        connection: Transport,
        config: &TcpConfig,
        role: Role,
        workload: Workload,
        end: EndId,
        start: Time,
        shared: &Rc<RefCell<TcbCache>>,
    ) -> Self {
        let client = role == Role::Active;
        let Share { to_send, expected, requests } = Share::of(workload, client);
        let three_way = config.shortcuts.handshake == Handshake::ThreeWay;
        TcpEnd {
            connection,
            workload: Rc::new(workload),
            model: None,
            client,
            end,
            start,
            opened: false,
            closes: three_way,
            to_send,
            expected,
            read: 0,
            unwritten: 0,
            next_action: if client { start } else { Time::ZERO },
            requests_left: requests,
            extra: None,
            shared: (config.tcb_sharing != TcbSharing::Off).then(|| shared.clone()),
            bare_first: config.shortcuts.ns2_bare_first_segment && config.shortcuts.handshake == Handshake::None,
            ns2_lengths: config.shortcuts.ns2_lengths,
            connected_at: None,
            acked_at: None,
            received_at: None,
            aborted: None,
        }
    }

    /// Attaches this end to its connection: the last leg of a split flow.
    pub(crate) fn joins(&mut self, connection: ConnectionId) {
        self.end = ends::listener(connection);
    }

    /// Sets the times of writes, for an application that writes at a rate.
    pub(crate) fn paced(mut self, seed: u64, name: &str) -> Self {
        if let Workload::Paced { rate, pattern, .. } = *self.workload
            && self.client
        {
            self.extra_mut().pacer = Some(Pacer::new(rate, pattern, self.start, seed, name));
        }
        self
    }

    /// Sets the time at which its stack learns that the path has changed.
    pub(crate) fn told_of_path(mut self, at: Option<Duration>) -> Self {
        if let Some(at) = at {
            let planned = self.next_action;
            self.extra_mut().path_change = Time::ZERO + at;
            self.plan(planned);
        }
        self
    }

    fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// What this end has to do with a change of its path that is still to come.
    fn before_change(&mut self) -> Option<&mut Extra> {
        self.extra.as_deref_mut().filter(|extra| extra.path_change != Time::NEVER)
    }

    /// Sets the time of the application's next action.
    fn plan(&mut self, at: Time) {
        self.next_action = match self.before_change() {
            Some(extra) => {
                extra.action = at;
                at.min(extra.path_change)
            }
            None => at,
        };
    }

    /// Time of the application's next action.
    fn planned(&self) -> Time {
        let extra = self.extra.as_ref().filter(|extra| extra.path_change != Time::NEVER);
        extra.map_or(self.next_action, |extra| extra.action)
    }

    /// Handles the signal of the stack that the path has changed, if it is due. Before it opens, the connection has nothing to do with it.
    fn heed_path(&mut self, now: Time) {
        let Some(extra) = self.before_change().filter(|extra| extra.path_change <= now) else { return };
        extra.path_change = Time::NEVER;
        self.next_action = extra.action;
        if !self.opened {
            return;
        }
        self.connection.on_path_changed();
        if let Some(shared) = &self.shared {
            shared.borrow_mut().forget_path();
        }
    }

    /// When this end first acts by itself. A passive one listens from the start.
    pub(crate) fn first_action(&self) -> Time {
        if self.client { self.start } else { Time::ZERO }
    }

    /// Leaves the state of an end that is done to the next connection.
    pub(crate) fn leave(&self, now: Time) {
        if let Some(shared) = &self.shared {
            self.connection.bequeath(&mut shared.borrow_mut(), now);
        }
    }

    /// True if this end will send nothing more.
    pub(crate) fn is_done(&self) -> bool {
        self.aborted.is_some()
            || (self.acked_at.is_some() || self.to_send == 0) && (self.received_at.is_some() || self.expected == 0)
    }

    /// The times of the responses to its requests, if it has made any.
    pub(crate) fn responses(&self) -> Option<&Responses> {
        self.extra.as_ref()?.responses.as_ref()
    }

    /// The same, taken from an end that has ended.
    pub(crate) fn take_responses(&mut self) -> Option<Responses> {
        self.extra.as_mut()?.responses.take()
    }

    /// True if the run must wait for it, because it is finite and not done.
    pub(crate) fn counts(&self) -> bool {
        !matches!(*self.workload, Workload::Greedy { .. } | Workload::Paced { total: None, .. }) && !self.is_done()
    }

    #[inline(always)]
    fn on_acknowledged<P: Probe>(&mut self, cx: &mut Context<'_, P>, total: u64) {
        if total >= self.to_send && self.to_send > 0 && self.acked_at.is_none() {
            self.acked_at = Some(cx.now);
        }
    }

    #[inline(always)]
    fn on_readable<P: Probe>(&mut self, cx: &mut Context<'_, P>, total: u64) {
        let fresh = total - self.read;
        self.read = total;
        self.connection.handle(cx, Input::Read(fresh));
        if total >= self.expected && self.received_at.is_none() && self.expected > 0 {
            self.received_at = Some(cx.now);
        }
        if let Workload::Greedy { duration: Some(_) } = *self.workload {
            self.extra_mut().read_at = Some(cx.now);
        }
        if let Workload::RequestResponse { request, response, think, count } = *self.workload {
            if self.client {
                let answered = total / response.get().max(1);
                let asked = (count - self.requests_left) as u64;
                if answered == asked && self.planned() == Time::NEVER {
                    self.on_answer(cx.now);
                    if self.requests_left > 0 {
                        self.plan(cx.now + think);
                    }
                }
                if self.received_at == Some(cx.now) && self.closes {
                    self.connection.handle(cx, Input::Close);
                }
            } else {
                let asked = total / request.get().max(1);
                let answered = self.produced() / response.get().max(1);
                if asked > answered {
                    self.write(cx, (asked - answered) * response.get());
                }
            }
        }
    }

    /// Makes a packet of a segment to send.
    #[inline(always)]
    fn pack(&self, segment: &Segment, packets: &mut Store) -> Parcel {
        let wire_len = packet::wire_len(segment, self.ns2_lengths);
        packets.put_segment(self.end, self.length_of(segment, wire_len), segment)
    }

    /// The same for a segment without options that is not marked.
    #[inline(always)]
    fn pack_plain(&self, segment: &Segment, packets: &mut Store) -> Parcel {
        let wire_len = packet::IPV4_HEADER + packet::TCP_HEADER + u32::from(segment.len);
        packets.put_plain_segment(self.end, self.length_of(segment, wire_len), segment)
    }

    /// The length of a segment on the line, which is `wire_len` with its headers.
    #[inline(always)]
    fn length_of(&self, segment: &Segment, wire_len: u32) -> u32 {
        let is_bare = self.bare_first && segment.len > 0 && segment.seq == FIRST_BYTE;
        if is_bare { segment.len.into() } else { wire_len }
    }

    /// Handles the connection's notifications.
    #[inline(never)]
    fn hear<P: Probe>(&mut self, cx: &mut Context<'_, P>, output: &Output) {
        match *output {
            Output::Transmit(_) => debug_assert!(false, "segments are packed"),
            Output::Readable(total) => self.on_readable(cx, total),
            Output::Acknowledged(total) => self.on_acknowledged(cx, total),
            // A server of bulk data sends nothing and closes after the client.
            Output::PeerClosed => {
                self.connection.handle(cx, Input::Close);
            }
            Output::Closed(Err(abort)) if self.acked_at.is_none() || self.received_at.is_none() => {
                self.aborted = Some(abort);
            }
            Output::Connected => {
                self.connected_at = Some(cx.now);
                if self.unwritten > 0 {
                    self.write_on(cx);
                }
                self.close_behind(cx);
            }
            Output::Closed(_) => {}
        }
    }

    /// True for TCP, false for STP.
    #[inline(always)]
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.connection, Transport::Tcp(_))
    }

    /// The next packet of a TCP end to send at `cx.now`, or when to poll again. `is_ordinary` is false at the first poll after an
    /// event, and is kept until the end waits, so that it is not computed for each packet.
    #[inline(always)]
    pub(crate) fn poll<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        packets: &mut Store,
        is_ordinary: &mut bool,
    ) -> Next {
        if let Transport::Tcp(connection) = &mut self.connection
            && (*is_ordinary || self.next_action > cx.now && connection.is_ordinary::<P>(cx.now))
        {
            *is_ordinary = true;
            match connection.poll_ordinary(cx.now) {
                Ordinary::Transmit(segment) => return Next::Send(self.pack_plain(&segment, packets)),
                Ordinary::Wait(_) if self.unwritten > 0 && self.write_on(cx) => *is_ordinary = false,
                Ordinary::Wait(timer) => return self.wait(timer),
                Ordinary::Other => *is_ordinary = false,
            }
        }
        self.poll_in_need(cx, packets)
    }

    /// The same for a poll that is not ordinary.
    #[inline(never)]
    fn poll_in_need<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Next {
        if let Transport::Tcp(connection) = &mut self.connection
            && self.next_action > cx.now
            && self.unwritten == 0
            && let Some(until) = connection.waits::<P>(cx.now)
        {
            return self.wait(until);
        }
        self.poll_tcp(cx, packets)
    }

    /// The same without the fast path.
    #[inline(never)]
    fn poll_tcp<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Next {
        self.poll_as(cx, packets, Transport::tcp)
    }

    /// As [`TcpEnd::poll`], for an STP end; separate, so that TCP's segments stay in registers.
    pub(crate) fn poll_stp<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Step<Parcel> {
        match self.poll_as(cx, packets, Transport::stp) {
            Next::Send(parcel) => Step::Do(parcel),
            Next::Wait(until) => Step::Wait((until != Time::NEVER).then_some(until)),
        }
    }

    #[inline(always)]
    fn poll_as<P: Probe, M: Machine<Output = Output>>(
        &mut self,
        cx: &mut Context<'_, P>,
        packets: &mut Store,
        of: impl Fn(&mut Transport) -> Option<&mut M>,
    ) -> Next {
        if self.next_action <= cx.now {
            self.act(cx);
        }
        while let Some(connection) = of(&mut self.connection) {
            match connection.poll(cx) {
                Step::Do(Output::Transmit(segment)) => return Next::Send(self.pack(&segment, packets)),
                Step::Do(output) => self.hear(cx, &output),
                Step::Wait(_) if self.unwritten > 0 && self.write_on(cx) => {}
                Step::Wait(timer) => return self.wait(timer.unwrap_or(Time::NEVER)),
            }
        }
        Next::Wait(Time::NEVER)
    }

    #[inline(always)]
    fn wait(&self, timer: Time) -> Next {
        Next::Wait(timer.min(self.next_action))
    }
}
