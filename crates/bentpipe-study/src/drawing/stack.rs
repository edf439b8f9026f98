//! The protocol stack of each node that a flow passes.

use crate::scenario::{FlowKind, LinkSpec, NodeId, QuicFlow, Scenario};
use crate::topology;
use bentpipe_engine::atm::{aal5, cell};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::wire::{ipv4, llc_snap, stp};

use super::canvas::{Anchor, BLACK, BLUE, Canvas, GREY, LIGHT, ORANGE, width_of};
use super::{Drawing, csv_row, words};

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;

const WIDTH: i32 = 230;
const LAYER: i32 = 32;
const GAP: i32 = 50;

/// Layers from the top, each with the size of a full packet.
type Layers = Vec<(String, Option<usize>)>;

/// The layers below IP on one side of a link.
fn below_ip(scenario: &Scenario, link: &LinkSpec, datagram: usize) -> Layers {
    let back = words::partner(scenario, link).map(|link| &link.config);
    let config = &link.config;
    let cells = config.cells.is_some() || back.is_some_and(|back| back.cells.is_some());
    // If the data's line is a switch port, the link itself takes no time.
    let rate = config.rate.or_else(|| back.filter(|back| back.cells.is_some())?.rate);
    let mut layers = Layers::new();
    if cells {
        let sdu = datagram + llc_snap::HEADER;
        let count = aal5::cells(sdu);
        layers.push((format!("LLC/SNAP {} B", llc_snap::HEADER), Some(sdu)));
        layers.push(("AAL5: trailer 8 B, padding".into(), Some(count * cell::PAYLOAD)));
        let header = cell::CELL - cell::PAYLOAD;
        layers.push((format!("ATM {header} B per {} B", cell::PAYLOAD), Some(count * cell::CELL)));
    } else if config.header > 0 {
        layers.push((format!("link header {} B", config.header), Some(datagram + config.header as usize)));
    }
    layers.push((words::line_rate(rate), None));
    layers
}

/// Header and payload of the flow's transport.
fn transport(kind: &FlowKind) -> (String, usize, usize) {
    match kind {
        FlowKind::Tcp(tcp) => (format!("TCP {TCP_HEADER} B"), TCP_HEADER, tcp.sender.mss as usize),
        FlowKind::Stp(flow) => (format!("STP {} B", stp::HEADER), stp::HEADER, flow.config.mss as usize),
        FlowKind::Quic(flow) => {
            let header = QuicFlow::min_overhead() as usize + 8;
            (format!("QUIC, UDP {header} B"), header, usize::from(flow.max_datagram()) + 8 - header)
        }
        FlowKind::Udp(flow) => ("UDP 8 B".to_owned(), 8, (flow.packet as usize).saturating_sub(ipv4::HEADER + 8)),
    }
}

/// A node: the layers that both of its links share, and those on either side.
struct Column {
    name: String,
    common: Layers,
    left: Option<Layers>,
    right: Option<Layers>,
}

fn columns(scenario: &Scenario, path: &[LinkId], kind: &FlowKind) -> Vec<Column> {
    let (name, header, payload) = transport(kind);
    let datagram = payload + header + ipv4::HEADER;
    let upper = || vec![(name.clone(), Some(payload + header)), (format!("IP {} B", ipv4::HEADER), Some(datagram))];
    let links: Vec<_> = path.iter().map(|&link| &scenario[link]).collect();
    let nodes = links.first().map(|link| link.from).into_iter().chain(links.iter().map(|link| link.to));
    let splits: &[_] = if let FlowKind::Tcp(tcp) = kind { &tcp.splits } else { &[] };
    let column = |(n, node): (usize, NodeId)| {
        let lower = |link: &&LinkSpec| below_ip(scenario, link, datagram);
        let (mut left, mut right) = (n.checked_sub(1).map(|n| lower(&links[n])), links.get(n).map(lower));
        let mut common = Layers::new();
        if left.is_none() || right.is_none() {
            common.push(("application".into(), Some(payload)));
            common.extend(upper());
        } else if splits.iter().any(|split| split.at == node || split.leaves() == node) {
            common.push(("relay".into(), Some(payload)));
            for side in [&mut left, &mut right].into_iter().flatten() {
                side.splice(0..0, upper());
            }
        } else {
            // A switch handles cells, a router packets.
            let switch = |layers: &Option<Layers>| layers.as_ref().is_some_and(|layers| layers.len() == 4);
            if switch(&left) && switch(&right) {
                for side in [&mut left, &mut right].into_iter().flatten() {
                    common = vec![side[2].clone()];
                    side.drain(..3);
                }
            } else {
                common.extend(upper().pop());
            }
        }
        Column { name: scenario[node].to_owned(), common, left, right }
    };
    nodes.enumerate().map(column).collect()
}

/// Number of layers on the higher side of a node.
fn sided(column: &Column) -> usize {
    let height = |side: &Option<Layers>| side.as_ref().map_or(0, Vec::len);
    height(&column.left).max(height(&column.right))
}

/// The left edge of a node's column.
fn left_of(n: usize) -> i32 {
    20 + (WIDTH + GAP) * n as i32
}

/// A picture being drawn, and the same content as a table.
struct Picture<'a> {
    scenario: &'a Scenario,
    columns: Vec<Column>,
    /// The lower edge of the columns.
    ground: i32,
    canvas: Canvas,
    csv: String,
}

impl Picture<'_> {
    fn column(&mut self, n: usize) {
        let Picture { columns, ground, canvas, csv, .. } = self;
        let (column, x) = (&columns[n], left_of(n));
        let mut y = *ground - LAYER * (column.common.len() + sided(column)) as i32;
        canvas.text((x + WIDTH / 2, y - 10), Anchor::Middle, BLUE, &column.name);
        for (words, bytes) in &column.common {
            canvas.rect((x, y), (WIDTH, LAYER), LIGHT, BLACK);
            canvas.text((x + WIDTH / 2, y + 21), Anchor::Middle, BLACK, words);
            *csv += &csv_row(&[&column.name, "both", words, &bytes.map_or(String::new(), |b| b.to_string())]);
            y += LAYER;
        }
        let sides = [("left", &column.left), ("right", &column.right)];
        let two = sides.iter().all(|(_, side)| side.is_some());
        for (side, (name, layers)) in sides.iter().enumerate() {
            let Some(layers) = layers else { continue };
            let width = if two { WIDTH / 2 } else { WIDTH };
            let from = x + if two { side as i32 * width } else { 0 };
            // The sides of a node may differ in height: both fill the space from the common layers to the ground.
            let mut y = *ground - LAYER * (sided(column) as i32);
            let last = layers.len() - 1;
            for (row, (words, bytes)) in layers.iter().enumerate() {
                let height = if row == last { *ground - y } else { LAYER };
                canvas.rect((from, y), (width, height), LIGHT, BLACK);
                // Half a column is too narrow for the full text.
                let short = words.split([':', ',']).next().unwrap_or(words);
                let short = if width_of(words) < width { words } else { short };
                canvas.text((from + width / 2, y + height / 2 + 5), Anchor::Middle, BLACK, short);
                *csv += &csv_row(&[&column.name, name, words, &bytes.map_or(String::new(), |b| b.to_string())]);
                y += LAYER;
            }
        }
    }

    fn links(&mut self, path: &[LinkId]) {
        let ground = self.ground;
        for (n, &link) in path.iter().enumerate() {
            let link = &self.scenario[link];
            let (from, to) = (left_of(n) + WIDTH * 3 / 4, left_of(n + 1) + WIDTH / 4);
            let line = [(from, ground), (from, ground + 24), (to, ground + 24), (to, ground)];
            self.canvas.path(&line, BLUE, false, true);
            let label = format!("{}, {}", words::name(link), words::span(link.config.delay));
            self.canvas.text(((from + to) / 2, ground + 42), Anchor::Middle, BLUE, &label);
        }
    }

    /// Draws the links of ACKs that are not the other directions of those in `path`. Returns the height below them.
    fn links_of_acks(&mut self, path: &[LinkId], back: &[LinkId]) -> i32 {
        let (scenario, ground) = (self.scenario, self.ground);
        let mut y = ground + 66;
        let paired = |link: LinkId| {
            path.iter().any(|&other| words::partner(scenario, &scenario[other]) == Some(&scenario[link]))
        };
        for link in back.iter().filter(|&&link| !paired(link)).map(|&link| &scenario[link]) {
            let at = |node: NodeId| self.columns.iter().position(|column| column.name == scenario[node]).unwrap_or(0);
            let (from, to) = (left_of(at(link.from)) + WIDTH / 2, left_of(at(link.to)) + WIDTH / 8);
            self.canvas.path(&[(from, ground), (from, y), (to, y), (to, ground)], ORANGE, false, true);
            let rate = link.config.rate.map_or("no line rate".to_owned(), words::rate);
            let label = format!("{}, {rate}, {}: ACKs", words::name(link), words::span(link.config.delay));
            self.canvas.text(((from + to) / 2, y + 18), Anchor::Middle, ORANGE, &label);
            y += 36;
        }
        y
    }

    /// Draws the sizes of a full packet on the receiver's layers, down to the line.
    fn sizes(&mut self) {
        let Some(receiver) = self.columns.last() else { return };
        let x = left_of(self.columns.len() - 1) + WIDTH + 16;
        let sizes: Vec<_> = receiver.common.iter().chain(receiver.left.iter().flatten()).collect();
        let mut y = self.ground - LAYER * sizes.len() as i32;
        self.canvas.text((x, y - 10), Anchor::Start, GREY, "full packet");
        for (_, bytes) in sizes {
            y += LAYER;
            if let Some(bytes) = bytes {
                self.canvas.text((x, y - 11), Anchor::Start, GREY, &format!("{bytes} B"));
            }
        }
    }
}

/// Draws the protocols of the nodes on the first flow's path, with the size of a full packet on each layer; `notes` are
/// written below. There must be a flow whose ends are connected.
pub fn stack(scenario: &Scenario, title: &str, notes: &[String]) -> Drawing {
    let flow = scenario.flows.first().expect("a flow to follow");
    let (path, back) = topology::flow_paths(scenario, flow).expect("its ends are joined");
    let columns = columns(scenario, &path, &flow.kind);
    let highest = columns.iter().map(|column| column.common.len() + sided(column)).max().unwrap_or(0);
    let csv = String::from("node,side,layer,bytes of a full packet\n");
    let ground = 30 + LAYER * highest as i32;
    let mut picture = Picture { scenario, columns, ground, canvas: Canvas::default(), csv };
    (0..picture.columns.len()).for_each(|n| picture.column(n));
    picture.links(&path);
    let y = picture.links_of_acks(&path, &back);
    picture.sizes();
    let Picture { mut canvas, mut csv, .. } = picture;
    canvas.lines((20, y + 20), Anchor::Start, BLACK, notes);
    for note in notes {
        csv += &csv_row(&["", "", note, ""]);
    }
    Drawing { svg: canvas.finish(title), csv }
}
