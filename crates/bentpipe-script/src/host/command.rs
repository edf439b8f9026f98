//! Shell commands of scripts. None is run: each is translated into its effect on a host, or refused by name.

/// The effect of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A setting of the kernel, without `net.ipv4.` and `net.inet.`.
    Sysctl(String, String),
    /// packetdrill's `defaults.sh`: the settings of Linux that its scripts assume.
    Defaults,
    /// Expects this many sockets in that state.
    Count(String, u32),
    /// Drops the connections in TIME-WAIT.
    DropTimeWait,
    /// Unsupported: the feature's name.
    Foreign(&'static str),
}

/// The settings of `defaults.sh` that a host here supports.
pub const DEFAULTS: [(&str, &str); 11] = [
    ("tcp_timestamps", "1"),
    ("tcp_syn_retries", "5"),
    ("tcp_synack_retries", "5"),
    ("tcp_frto", "2"),
    ("tcp_sack", "1"),
    ("tcp_dsack", "1"),
    ("tcp_reordering", "3"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
    ("tcp_slow_start_after_idle", "0"),
];

/// The effects of a command, in order.
pub fn effects(command: &str) -> Vec<Effect> {
    let command = command.replace("\\\n", " ");
    let mut effects = Vec::new();
    for line in command.lines().flat_map(|line| line.split(';')).flat_map(|line| line.split("||")) {
        one(line.split('#').next().unwrap_or_default().trim(), &mut effects);
    }
    effects
}

fn one(line: &str, effects: &mut Vec<Effect>) {
    let words = words(line);
    let Some(first) = words.first() else { return };
    let program = first.rsplit('/').next().unwrap_or(first);
    match program {
        "defaults.sh" => effects.push(Effect::Defaults),
        "sysctl" | "set_sysctls.py" => settings(&words[1..], effects),
        "sockstat" => {
            // sockstat -4 -P tcp -s | grep packetdril | grep -c TIME_WAIT | grep 1
            let at = words.iter().position(|word| word == "-c");
            let state = at.and_then(|at| words.get(at + 1));
            match (state, words.last().and_then(|count| count.parse().ok())) {
                (Some(state), Some(count)) => effects.push(Effect::Count(state.clone(), count)),
                _ => match words.last() {
                    Some(state) if words.len() > 3 => effects.push(Effect::Count(state.clone(), 1)),
                    _ => effects.push(Effect::Foreign("shell commands beyond sysctl and sockstat")),
                },
            }
        }
        "tcpdrop" => {
            // tcpdrop -s TIME_WAIT
            let is_time_wait = matches!(&words[1..], [option, state] if option == "-s" && state == "TIME_WAIT");
            let other = Effect::Foreign("tcpdrop of other states than TIME_WAIT");
            effects.push(if is_time_wait { Effect::DropTimeWait } else { other });
        }
        // Counters are read and discarded; changed settings are restored.
        "nstat" if words.get(1).is_some_and(|word| word == ">") => {}
        _ if program.starts_with("sysctl_restore") => {}
        "ip" if words.get(1).is_some_and(|word| word == "tcp_metrics") => {}
        // Full segments compare equal whether the device has cut them or not.
        "ethtool" if words.get(1).is_some_and(|word| word == "-K") => offloads(&words[2..], effects),
        "tc" => effects.push(Effect::Foreign("queueing disciplines")),
        "ip" => effects.push(Effect::Foreign("routes")),
        "ss" => effects.push(Effect::Foreign("inet_diag")),
        // Further lines of a `sysctl` command have settings only.
        _ if words.iter().all(|word| word.contains('=')) => settings(&words, effects),
        _ => effects.push(Effect::Foreign("shell commands beyond sysctl and sockstat")),
    }
}

/// `ethtool -K DEVICE tso off gso off`: segmentation has no effect here.
fn offloads(words: &[String], effects: &mut Vec<Effect>) {
    let is_neutral = |pair: &[String]| matches!(pair[0].as_str(), "tso" | "gso") && pair.len() == 2;
    if words.len() < 3 || !words[1..].chunks(2).all(is_neutral) {
        effects.push(Effect::Foreign("shell commands beyond sysctl and sockstat"));
    }
}

/// The name of a kernel setting without `net.ipv4.` and `net.inet.`.
pub(crate) fn without_prefix(name: &str) -> &str {
    name.trim_start_matches("net.ipv4.").trim_start_matches("net.inet.")
}

fn settings(words: &[String], effects: &mut Vec<Effect>) {
    for word in words {
        if word.starts_with('>') || word == "2>&1" {
            return;
        }
        let Some((name, value)) = word.split_once('=') else { continue };
        let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
        effects.push(Effect::Sysctl(without_prefix(&name).to_owned(), value.to_owned()));
    }
}

/// Words of a shell line; quotes join words.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut is_word = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, is_word) = (Some(c), true),
            (None, c) if c.is_whitespace() || c == '|' => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that drops other connections is unsupported: its verdict would be that of another script.
    #[test]
    fn only_connections_in_time_wait_are_dropped() {
        assert_eq!(effects("tcpdrop -s TIME_WAIT"), [Effect::DropTimeWait]);
        for command in
            ["tcpdrop", "tcpdrop -a", "tcpdrop -s ESTABLISHED", "tcpdrop -C new -s TIME_WAIT", "tcpdrop TIME_WAIT"]
        {
            assert!(matches!(effects(command)[..], [Effect::Foreign(_)]), "{command}");
        }
    }

    #[test]
    fn only_segmentation_is_neutral() {
        assert_eq!(effects("ethtool -K tun0 tso off gso off"), []);
        for command in ["ethtool -K tun0 gro on", "ethtool -K tun0 tso", "ethtool -K tun0", "ethtool -S tun0"] {
            assert!(matches!(effects(command)[..], [Effect::Foreign(_)]), "{command}");
        }
    }
}
