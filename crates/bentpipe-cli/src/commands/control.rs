//! Live control of an emulation: `--control SOCKET`, and `bentpipe link set`, which speaks to it.

use std::path::{Path, PathBuf};

use bentpipe_emulator::{Control, Emulator, ask};
use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::network::LinkId;
use bentpipe_language::suggest::did_you_mean;
use bentpipe_study::scenario::Scenario;

use crate::args::LinkSet;
use crate::failure::{End, Failure};
use crate::output;

/// The environment variable that names the socket.
pub(super) const SOCKET: &str = "BENTPIPE_CONTROL";

/// The mark of its wake-ups.
pub(super) const MARK: u32 = 1;

/// A request: the name of a link, and keys with their values.
type Change = (String, Vec<(String, String)>);

/// The links as they are now, and the socket.
pub(super) struct Live {
    control: Control,
    text: String,
    /// All changes so far.
    sets: Vec<(String, String)>,
    scenario: Scenario,
}

impl Live {
    /// Opens the socket, if `--control` is given, and wakes the emulation for its requests.
    pub(super) fn open(path: Option<&Path>, scenario: &Scenario, emulator: &Emulator) -> Result<Option<Live>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let control = Control::open(path).map_err(|error| {
            Failure::usage(format!("`{}` cannot be the control socket: {error}", path.display()), None)
        })?;
        emulator.watch(&control, MARK).map_err(Failure::broken)?;
        Ok(Some(Live { control, text: scenario.to_toml(), sets: Vec::new(), scenario: scenario.clone() }))
    }

    /// Carries out a request.
    pub(super) fn serve(&mut self, emulator: &mut Emulator) {
        while let Some(request) = self.control.request() {
            let answer = match self.change(&request.line, emulator) {
                Ok(changed) => format!("{}\n", serde_json::json!(changed)),
                // A mistake in a value says so itself.
                Err(text) if text.starts_with("error: ") => format!("{text}\n"),
                Err(text) => format!("error: {text}\n"),
            };
            request.answer(&answer);
        }
    }

    /// Returns the names of the links that it changed.
    fn change(&mut self, line: &str, emulator: &mut Emulator) -> Result<Vec<String>, String> {
        let (name, values): Change =
            serde_json::from_str(line).map_err(|_| "the request is not understood".to_owned())?;
        let links = self.links(&name)?;
        let mut sets = self.sets.clone();
        for &link in &links {
            for (key, value) in &values {
                self.check(link, key)?;
                let key = format!("links.{}.{key}", self.scenario[link].name);
                sets.retain(|(known, _)| *known != key);
                sets.push((key, value.clone()));
            }
        }
        let changed = Scenario::parse(&self.text, "link set", &sets).map_err(|errors| errors.to_string())?;
        let same = |a: &Scenario, b: &Scenario| {
            let ends =
                |scenario: &Scenario| scenario.links.iter().map(|l| (l.name.clone(), l.from, l.to)).collect::<Vec<_>>();
            a.nodes == b.nodes && ends(a) == ends(b)
        };
        if !same(&changed, &self.scenario) {
            return Err("the name and the ends of a link cannot change while it runs".to_owned());
        }
        for &link in &links {
            if changed[link].config.cells.is_some() || changed[link].config.has_managed_queue() {
                return Err("cells and CoDel cannot begin while a link runs".to_owned());
            }
        }
        for &link in &links {
            emulator.retune(link, &changed[link]);
        }
        (self.sets, self.scenario) = (sets, changed);
        Ok(links.iter().map(|&link| self.scenario[link].name.clone()).collect())
    }

    /// The link with a name, or both of its directions.
    fn links(&self, name: &str) -> Result<Vec<LinkId>, String> {
        let is_it = |link: &str| link == name || link.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        let all = LinkId::first(self.scenario.links.len());
        let links: Vec<_> = all.filter(|&link| is_it(&self.scenario[link].name)).collect();
        if links.is_empty() {
            let names = || self.scenario.links.iter().map(|link| link.name.as_str());
            let help = did_you_mean(name, names().chain(names().filter_map(|name| name.split('/').next())));
            let all = || format!("there are {}", names().collect::<Vec<_>>().join(", "));
            return Err(format!("there is no link `{name}`: {}", help.unwrap_or_else(all)));
        }
        for &link in &links {
            let config = &self.scenario[link].config;
            if config.has_managed_queue() {
                return Err(format!("the queue of `{name}` is managed (CoDel): it cannot change while it runs"));
            }
            if config.cells.is_some() {
                return Err(format!("`{name}` is in cells and cannot change while it runs"));
            }
            if self.scenario.layer_over(link).is_some() {
                return Err(format!("a layer over `{name}` counts with its settings: it cannot change while it runs"));
            }
        }
        Ok(links)
    }

    /// Refuses a key that would change nothing.
    fn check(&self, link: LinkId, key: &str) -> Result<(), String> {
        let spec = &self.scenario[link];
        let LinkConfig { moves, phases, rate_trace, .. } = &spec.config;
        let moves = moves.as_deref();
        let follows = match key {
            "rate" => {
                rate_trace.is_some()
                    || moves.is_some_and(|moves| moves.rate.is_some())
                    || phases.is_some_and(|phases| phases.rate.is_some())
            }
            "delay" => {
                moves.is_some_and(|moves| moves.delay.is_some()) || phases.is_some_and(|phases| phases.delay.is_some())
            }
            "loss" => moves.is_some_and(|moves| moves.loss.is_some()),
            "queue" => moves.is_some_and(|moves| moves.queue.is_some()),
            _ => false,
        };
        if follows {
            return Err(format!("`{key}` of `{}` follows a schedule, phases or a trace", spec.name));
        }
        Ok(())
    }
}

/// `bentpipe link set`.
pub(crate) fn set(args: &LinkSet) -> Result<End, Failure> {
    let named = || std::env::var_os(SOCKET).map(PathBuf::from);
    let Some(path) = args.control.clone().or_else(named) else {
        let help = format!("give the socket of `bentpipe emulate --control SOCKET`, or set {SOCKET}");
        return Err(Failure::usage("`--control` is needed", Some(help)));
    };
    let line = serde_json::to_string(&(&args.name, &args.values)).map_err(Failure::broken)?;
    if line.len() as u64 + 1 > bentpipe_emulator::MAX_LINE {
        return Err(Failure::usage("the values are too long", None));
    }
    let answer = ask(&path, &line).map_err(|error| {
        let help = "an emulation with `--control` must be running".to_owned();
        Failure::usage(format!("`{}`: {error}", path.display()), Some(help))
    })?;
    let answer = answer.trim_end();
    if let Some(error) = answer.strip_prefix("error: ") {
        return Err(Failure::usage(error, None));
    }
    let Ok(changed) = serde_json::from_str::<Vec<String>>(answer) else {
        return Err(Failure::usage("the emulation ended before it answered", None));
    };
    match args.json {
        true => output::print_json(&serde_json::json!({ "changed": changed }))?,
        false => output::print(&format!("changed {}\n", changed.join(", ")))?,
    }
    Ok(End::Done)
}
