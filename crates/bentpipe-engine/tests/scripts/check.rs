//! What a script asserts: comparisons of sums and products over what a connection shows.

use crate::play::Player;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(i128),
    Word(String),
}

/// `a == b, c <= d`: all must hold.
pub(crate) fn check(text: &str, player: &Player) -> Result<(), String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).try_for_each(|part| holds(part, player))
}

fn holds(text: &str, player: &Player) -> Result<(), String> {
    let operators = ["==", "!=", "<=", ">=", "<", ">"];
    let (operator, at) = operators
        .iter()
        .find_map(|operator| text.find(operator).map(|at| (*operator, at)))
        .ok_or_else(|| format!("`{text}` compares nothing"))?;
    let left = sum(text[..at].trim(), player)?;
    let right = sum(text[at + operator.len()..].trim(), player)?;
    let holds = match (operator, &left, &right) {
        ("==", a, b) => a == b,
        ("!=", a, b) => a != b,
        ("<=", Value::Number(a), Value::Number(b)) => a <= b,
        (">=", Value::Number(a), Value::Number(b)) => a >= b,
        ("<", Value::Number(a), Value::Number(b)) => a < b,
        (">", Value::Number(a), Value::Number(b)) => a > b,
        _ => return Err(format!("`{text}`: words have no order")),
    };
    if holds { Ok(()) } else { Err(format!("`{text}` does not hold: {left:?} {operator} {right:?}")) }
}

fn sum(text: &str, player: &Player) -> Result<Value, String> {
    // The last operator splits; there are no brackets. Without spaces around it a minus is part of a name.
    if let Some((left, right)) = text.rsplit_once(" + ") {
        return Ok(Value::Number(numeric(sum(left, player)?)? + numeric(product(right, player)?)?));
    }
    if let Some((left, right)) = text.rsplit_once(" - ") {
        return Ok(Value::Number(numeric(sum(left, player)?)? - numeric(product(right, player)?)?));
    }
    product(text, player)
}

fn product(text: &str, player: &Player) -> Result<Value, String> {
    if let Some(at) = text.rfind(['*', '/']) {
        let (left, right) = (numeric(product(&text[..at], player)?)?, numeric(atom(&text[at + 1..], player)?)?);
        return Ok(Value::Number(if &text[at..=at] == "*" { left * right } else { left / right }));
    }
    atom(text, player)
}

fn numeric(value: Value) -> Result<i128, String> {
    match value {
        Value::Number(number) => Ok(number),
        Value::Word(word) => Err(format!("`{word}` is no number")),
    }
}

/// Bytes, segments and milliseconds; words for states (`established`, `fin-wait-1`, ...), the end (`none`, `ok`,
/// `refused`, `reset`, `retries-exhausted`, `local`) and `infinite`.
fn atom(text: &str, player: &Player) -> Result<Value, String> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Ok(Value::Number(number));
    }
    let connection = player.connection();
    let stats = connection.stats();
    let watch = player.watch();
    let number = match text {
        "mss" => connection.config().mss as i128,
        "cwnd" => connection.cwnd() as i128,
        "ssthresh" if connection.ssthresh() == u64::MAX => return Ok(Value::Word("infinite".into())),
        "ssthresh" => connection.ssthresh() as i128,
        // With the inflation of fast recovery, as of the last ACK.
        "window" => watch.window as i128,
        "flight" => watch.flight as i128,
        "srtt" => connection.srtt().map_or(-1, |srtt| srtt.as_nanos() as i128 / 1_000_000),
        // Before backoff, as of the last sample.
        "rto" => watch.rto.as_nanos() as i128 / 1_000_000,
        "received" => connection.received() as i128,
        "acked" => connection.acknowledged() as i128,
        "snd_una" => connection.snd_una() as i128,
        "rcv_nxt" => connection.rcv_nxt() as i128,
        "recoveries" => watch.recoveries as i128,
        "recoveries_left" => watch.recoveries_left as i128,
        "retransmits" => stats.retransmits as i128,
        "timeouts" => stats.timeouts as i128,
        "spurious_timeouts" => stats.spurious_timeouts as i128,
        "fast_retransmits" => stats.fast_retransmits as i128,
        "duplicate_acks" => stats.duplicate_acks as i128,
        "dsacks" => stats.dsacks as i128,
        "max_burst" => stats.max_burst as i128,
        "connected" => player.connected as i128,
        "peer_closed" => player.peer_closed as i128,
        "state" => return Ok(Value::Word(word(&format!("{:?}", connection.state())))),
        "ended" => {
            return Ok(Value::Word(match player.ended {
                None => "none".into(),
                Some(Ok(())) => "ok".into(),
                Some(Err(abort)) => word(&format!("{abort:?}")),
            }));
        }
        name if name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('_') => {
            return Ok(Value::Word(name.to_owned()));
        }
        name => return Err(format!("unknown name `{name}`")),
    };
    Ok(Value::Number(number))
}

/// `FinWait1` to `fin-wait-1`.
fn word(name: &str) -> String {
    let mut word = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && (c.is_ascii_uppercase() || c.is_ascii_digit()) {
            word.push('-');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}
