//! The blocks that a packet passes in order: processors, queues with their servers, delays, and errors.

use crate::scenario::{LinkSpec, NodeId, Scenario};
use crate::topology;
use bentpipe_engine::network::LinkId;

use super::canvas::{Anchor, BLACK, BLUE, Canvas, GREY, LIGHT, ORANGE};
use super::{Drawing, csv_row, words};

const WIDTH: i32 = 172;
const GAP: i32 = 26;
const HEIGHT: i32 = 92;
const LANE: i32 = HEIGHT + 24;

/// Title and description of the block.
#[derive(Clone, Debug, PartialEq)]
struct Block(String, Vec<String>);

fn end(scenario: &Scenario, node: NodeId, transport: &str) -> Block {
    let mut lines = vec![transport.to_owned()];
    if let Some(time) = &scenario.hosts[node.index()].processing {
        lines.push("FIFO, server:".to_owned());
        lines.extend(words::processing(time));
    }
    Block(scenario[node].to_owned(), lines)
}

/// The queue and server before a line, the line's delay, and its errors.
fn of_link(scenario: &Scenario, link: &LinkSpec) -> Vec<Block> {
    let config = &link.config;
    let mut blocks = Vec::new();
    if let Some(rate) = config.rate {
        let mut lines = config.cells.as_ref().map_or_else(|| vec![words::room(config.queue.limit)], words::cell_buffer);
        lines.push(format!("server: {}", words::rate(rate)));
        if let Some(line) = config.cells.and_then(|cells| cells.line) {
            lines.push(format!("lines in: {}", words::rate(line)));
        }
        let unit = if config.cells.is_some() { "cells" } else { "packets" };
        blocks.push(Block(format!("{}: {unit}", &scenario[link.from]), lines));
    }
    blocks.push(Block(words::name(link).to_owned(), vec![format!("delay {}", words::span(config.delay))]));
    let (packet, bit) = (config.good.packet.get(), config.good.bit.get());
    if packet + bit > 0.0 {
        let mut lines = Vec::new();
        if packet > 0.0 {
            lines.push(format!("passes {} %", words::plain(100.0 * (1.0 - packet))));
        }
        if bit > 0.0 {
            lines.push(format!("passes (1 - {bit:e})^bits"));
            lines.push(format!("of {}", if config.cells.is_some() { "a cell" } else { "a packet" }));
        }
        blocks.push(Block("errors".to_owned(), lines));
    }
    blocks
}

fn along(scenario: &Scenario, path: &[LinkId], ends: [Block; 2]) -> Vec<Block> {
    let [first, last] = ends;
    let links = path.iter().flat_map(|&link| of_link(scenario, &scenario[link]));
    std::iter::once(first).chain(links).chain([last]).collect()
}

/// Number of blocks that the lists have in common at their ends.
fn shared(lists: &[Vec<Block>]) -> usize {
    let [first, rest @ ..] = lists else { return 0 };
    let common = |list: &Vec<Block>| first.iter().rev().zip(list.iter().rev()).take_while(|(a, b)| a == b).count();
    rest.iter().map(common).min().unwrap_or(first.len())
}

fn draw(canvas: &mut Canvas, (x, y): (i32, i32), Block(title, lines): &Block) {
    canvas.rect((x, y), (WIDTH, HEIGHT), LIGHT, BLACK);
    canvas.text((x + WIDTH / 2, y + 18), Anchor::Middle, BLUE, title);
    canvas.lines((x + WIDTH / 2, y + 37), Anchor::Middle, BLACK, lines);
}

/// Draws all flows from their sources and, below, the path of the first flow's ACKs.
pub fn blocks(scenario: &Scenario, title: &str) -> Drawing {
    let paths: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| (flow, topology::flow_paths(scenario, flow).expect("its ends are joined")))
        .collect();
    let there: Vec<_> = paths
        .iter()
        .map(|(flow, (path, _))| {
            let ends = [flow.from, flow.to].map(|node| end(scenario, node, &words::transport(flow)));
            along(scenario, path, ends)
        })
        .collect();
    let lanes = there.len() as i32;
    let common = shared(&there);
    let x = |place: usize| 20 + (WIDTH + GAP) * place as i32;
    let middle = 10 + LANE * (lanes - 1) / 2;
    let mut canvas = Canvas::default();
    let mut csv = String::from("flow,direction,place,block,setting\n");
    let mut table = |flow: &str, direction: &str, blocks: &[Block]| {
        for (place, Block(title, lines)) in blocks.iter().enumerate() {
            csv += &csv_row(&[flow, direction, &(place + 1).to_string(), title, &lines.join(", ")]);
        }
    };
    for (lane, ((flow, _), list)) in paths.iter().zip(&there).enumerate() {
        table(&flow.name, "data", list);
        let own = list.len() - common;
        let place = |n: usize| (x(n), if n < own { 10 + LANE * lane as i32 } else { middle });
        // Common blocks are drawn once.
        let last = if lane == 0 { list.len() } else { own };
        for (n, block) in list[..last].iter().enumerate() {
            draw(&mut canvas, place(n), block);
        }
        for n in 1..last.max(own + 1).min(list.len()) {
            let ((x0, y0), (x1, y1)) = (place(n - 1), place(n));
            let (from, to, bend) = (x0 + WIDTH, x1, x1 - GAP / 2);
            let (y0, y1) = (y0 + HEIGHT / 2, y1 + HEIGHT / 2);
            canvas.path(&[(from, y0), (bend, y0), (bend, y1), (to, y1)], BLUE, false, true);
        }
    }
    let (flow, (_, path)) = &paths[0];
    let ends = [flow.to, flow.from].map(|node| end(scenario, node, &words::transport(flow)));
    let back = along(scenario, path, ends);
    table(&flow.name, "ACKs", &back);
    let y = 10 + LANE * lanes + 30;
    let of = if lanes == 1 { "ACKs".to_owned() } else { format!("ACKs of {}, the others alike", flow.name) };
    canvas.text((20, y - 8), Anchor::Start, GREY, &format!("{of}, from right to left"));
    // The ends are drawn below themselves.
    let columns = there[0].len().max(back.len());
    let right = |n: usize| x(columns - 1 - n * (columns - 1) / (back.len() - 1).max(1));
    for (n, block) in back.iter().enumerate() {
        draw(&mut canvas, (right(n), y), block);
        if n > 0 {
            canvas.path(&[(right(n - 1), y + HEIGHT / 2), (right(n) + WIDTH, y + HEIGHT / 2)], ORANGE, false, true);
        }
    }
    Drawing { svg: canvas.finish(title), csv }
}
