//! Live control of an emulation: `--control SOCKET`, and `bentpipe link`, which speaks to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bentpipe_emulator::{Control, Emulator, ask};
use bentpipe_engine::link::{LinkConfig, LossConfig, Track};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Probability, Time};
use bentpipe_language::single;
use bentpipe_language::suggest::did_you_mean;
use bentpipe_study::scenario::{LinkSpec, Scenario, ScenarioErrors};
use serde::{Deserialize, Serialize};

use crate::args::realtime::{LinkFade, LinkSet};
use crate::failure::{End, Failure};
use crate::output;

/// The environment variable that names the socket.
pub(super) const SOCKET: &str = "BENTPIPE_CONTROL";

/// The mark of its wake-ups.
pub(super) const MARK: u32 = 1;

/// A request: the name of a link, and keys with their values; or [`FADE`] alone, with a time.
type Change = (String, Vec<(String, String)>);

/// The source of a request's values in errors.
const TYPED: &str = "link set";

/// No key of links.
const FADE: &str = "fade";

/// What a request did, as it is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Done {
    /// These links have new settings.
    Changed(Vec<String>),
    /// These links lose everything for a time.
    Faded { links: Vec<String>, seconds: f64 },
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Changed(links) => write!(f, "changed {}", links.join(", ")),
            Done::Faded { links, seconds } => write!(f, "{}: all packets are lost for {seconds} s", links.join(", ")),
        }
    }
}

/// The value of [`SOCKET`] for a command, which may work in another folder. A name that is too long for a socket stays as it is.
pub(super) fn socket(path: &Path) -> PathBuf {
    // `sun_path` in unix(7), with its final zero byte.
    const LONGEST: usize = 107;
    let absolute = std::path::absolute(path).ok();
    absolute.filter(|absolute| absolute.as_os_str().len() <= LONGEST).unwrap_or_else(|| path.to_owned())
}

/// The links as they are now, and the socket.
pub(super) struct Live {
    control: Control,
    text: String,
    /// All changes so far.
    sets: Vec<(String, String)>,
    scenario: Scenario,
    /// Links that lose everything, and until when.
    fades: Vec<(LinkId, Time)>,
}

impl Live {
    /// Opens the socket, if `--control` is given, and wakes the emulation for its requests.
    pub(super) fn open(path: Option<&Path>, scenario: &Scenario, emulator: &Emulator) -> Result<Option<Live>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let control = Control::open(path).map_err(|error| {
            Failure::usage(format!("`{}` cannot be the control socket: {error}", path.display()), None)
        })?;
        emulator.watch(&control, MARK).map_err(Failure::broken)?;
        let (text, scenario) = (scenario.to_toml(), scenario.clone());
        Ok(Some(Live { control, text, sets: Vec::new(), scenario, fades: Vec::new() }))
    }

    /// When the next fade ends.
    pub(super) fn next(&self) -> Option<Time> {
        self.fades.iter().map(|&(_, until)| until).min()
    }

    /// Ends the fades that are over.
    pub(super) fn on_time(&mut self, emulator: &mut Emulator) {
        let now = emulator.clock().now();
        while let Some(at) = self.fades.iter().position(|&(_, until)| until <= now) {
            let (link, _) = self.fades.swap_remove(at);
            emulator.retune(link, &self.scenario[link]);
        }
    }

    /// The links lose what leaves them for so long.
    fn fade(&mut self, links: &[LinkId], span: &str, emulator: &mut Emulator) -> Result<Done, String> {
        let span = length(span)?;
        let until = emulator.clock().now() + span;
        for &link in links {
            self.fades.retain(|&(other, _)| other != link);
            self.fades.push((link, until));
            emulator.retune(link, &faded(&self.scenario[link]));
        }
        Ok(Done::Faded { links: self.names(links), seconds: span.as_secs_f64() })
    }

    fn names(&self, links: &[LinkId]) -> Vec<String> {
        links.iter().map(|&link| self.scenario[link].name.clone()).collect()
    }

    /// Carries out a request.
    pub(super) fn serve(&mut self, emulator: &mut Emulator) {
        while let Some(request) = self.control.request() {
            let answer = match self.change(&request.line, emulator) {
                Ok(done) => format!("{}\n", serde_json::json!(done)),
                // A mistake in a value says so itself.
                Err(text) if text.starts_with("error: ") => format!("{text}\n"),
                Err(text) => format!("error: {text}\n"),
            };
            request.answer(&answer);
        }
    }

    fn change(&mut self, line: &str, emulator: &mut Emulator) -> Result<Done, String> {
        let (name, values): Change =
            serde_json::from_str(line).map_err(|_| "the request is not understood".to_owned())?;
        let links = self.links(&name)?;
        if let [(key, span)] = &values[..]
            && key == FADE
        {
            return self.fade(&links, span, emulator);
        }
        values.iter().try_for_each(|(key, _)| known(&name, key))?;
        let mut sets = self.sets.clone();
        let mut changed = self.scenario.clone();
        // One by one: a mistake in a value is the same for both directions.
        for &link in &links {
            for (key, value) in &values {
                let spec = &self.scenario[link];
                if follows(spec, key) {
                    return Err(format!("`{key}` of `{}` follows a schedule, phases or a trace", spec.name));
                }
                let key = format!("links.{}.{key}", self.scenario[link].name);
                sets.retain(|(known, _)| *known != key);
                sets.push((key, value.clone()));
            }
            let prefix = format!("links.{}.", self.scenario[link].name);
            changed =
                Scenario::parse(&self.text, TYPED, &sets).map_err(|errors| as_typed(errors, &prefix).to_string())?;
        }
        let same = |a: &Scenario, b: &Scenario| {
            let ends =
                |scenario: &Scenario| scenario.links.iter().map(|l| (l.name.clone(), l.from, l.to)).collect::<Vec<_>>();
            a.nodes == b.nodes && ends(a) == ends(b)
        };
        if !same(&changed, &self.scenario) {
            return Err("the name and the ends of a link cannot change while it runs".to_owned());
        }
        links.iter().try_for_each(|&link| self.may_become(&changed, link))?;
        for &link in &links {
            let is_faded = self.fades.iter().any(|&(other, _)| other == link);
            let spec = if is_faded { faded(&changed[link]) } else { changed[link].clone() };
            emulator.retune(link, &spec);
        }
        (self.sets, self.scenario) = (sets, changed);
        Ok(Done::Changed(self.names(&links)))
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
            if self.scenario[link].config.cells.is_some() {
                return Err(format!("`{name}` is in cells and cannot change while it runs"));
            }
        }
        Ok(links)
    }

    /// Refuses what a link of the changed scenario needs other queues or layers for.
    fn may_become(&self, changed: &Scenario, link: LinkId) -> Result<(), String> {
        let (before, after) = (&self.scenario[link], &changed[link]);
        let name = &before.name;
        if after.config.cells.is_some() {
            return Err("cells cannot be switched on while a link runs".to_owned());
        }
        let is_managed = before.config.has_managed_queue() || after.config.has_managed_queue();
        if is_managed && before.config.queue != after.config.queue {
            return Err(format!(
                "`queue` of `{name}` cannot change while it runs: CoDel or DualPI2 manages it, or would"
            ));
        }
        if let Some((layer, _)) = self.scenario.layer_over(link) {
            let ends = |scenario: &Scenario| [0, 1].map(|side| scenario.layers[layer].end(&scenario.links, side));
            if ends(&self.scenario) != ends(changed) || before.config.mtu != after.config.mtu {
                let layer = &self.scenario.layers[layer].name;
                let what = "rate, delay, queue and MTU, which cannot change while it runs";
                return Err(format!("`{layer}` over `{name}` depends on its {what}"));
            }
        }
        Ok(())
    }
}

/// True if the key would change nothing, because what it sets follows a schedule, phases or a trace.
fn follows(spec: &LinkSpec, key: &str) -> bool {
    let LinkConfig { moves, phases, rate_trace, .. } = &spec.config;
    let moves = moves.as_deref();
    match key {
        "rate" => {
            rate_trace.is_some()
                || moves.is_some_and(|moves| moves.rate.is_some())
                || phases.is_some_and(|phases| phases.rate.is_some())
        }
        "delay" => spec.config.delay_changes(),
        "loss" => spec.config.loss_changes(),
        "queue" | "queue.limit" => moves.is_some_and(|moves| moves.queue.is_some()),
        _ => false,
    }
}

/// Refuses what is no setting of a link, or none that can change; of a path, the first step counts.
fn known(link: &str, key: &str) -> Result<(), String> {
    const ENDS: [&str; 4] = ["name", "between", "from", "to"];
    let first = key.split('.').next().unwrap_or(key);
    if let "forward" | "backward" = first {
        let base = link.split('/').next().unwrap_or(link);
        let setting = key.split_once('.').map_or("delay", |(_, setting)| setting);
        return Err(format!("the direction belongs to the name: link set {base}/{first} {setting}=.."));
    }
    if ENDS.contains(&first) {
        return Err("the name and the ends of a link cannot change while it runs".to_owned());
    }
    if Scenario::link_settings().any(|known| known == first) {
        return Ok(());
    }
    let help = did_you_mean(first, Scenario::link_settings());
    let help =
        help.unwrap_or_else(|| "rate, delay, loss, queue and similar settings can change: delay='40 ms'".to_owned());
    Err(format!("`{link}` has no setting `{first}`: {help}"))
}

/// The length of a fade.
fn length(text: &str) -> Result<Duration, String> {
    let span = single::duration(text).map_err(|error| match &error.help {
        Some(help) => format!("{error}: {help}"),
        None => error.to_string(),
    })?;
    if span == Duration::ZERO {
        return Err("a fade must be longer than 0 s".to_owned());
    }
    Ok(span)
}

/// The errors at what the user typed: `rate=5` instead of `links.sat/forward.rate=5`.
fn as_typed(ScenarioErrors(errors): ScenarioErrors, prefix: &str) -> ScenarioErrors {
    ScenarioErrors(errors.into_iter().map(|error| error.without_prefix(prefix, TYPED)).collect())
}

/// The link, losing everything.
fn faded(spec: &LinkSpec) -> LinkSpec {
    let all = LossConfig { packet: Probability::ONE, bit: Probability::ZERO };
    let mut spec = spec.clone();
    (spec.config.good, spec.config.bad) = (all, all);
    if let Some(moves) = &mut spec.config.moves {
        Arc::make_mut(moves).loss = None;
    }
    if let Some(phases) = &mut spec.config.phases {
        // The loss of their outages, if they have any, replaces the link's.
        phases.loss = if phases.loss > 0 { Track::ONE } else { 0 };
    }
    spec
}

/// `bentpipe link set`.
pub(crate) fn set(args: &LinkSet) -> Result<End, Failure> {
    request(&args.name, &args.values, args.control.as_deref(), args.json)
}

/// `bentpipe link fade`.
pub(crate) fn fade(args: &LinkFade) -> Result<End, Failure> {
    request(&args.name, &[(FADE.to_owned(), args.time.clone())], args.control.as_deref(), args.json)
}

fn request(name: &str, values: &[(String, String)], control: Option<&Path>, is_json: bool) -> Result<End, Failure> {
    let named = || std::env::var_os(SOCKET).map(PathBuf::from);
    let Some(path) = control.map(Path::to_owned).or_else(named) else {
        let help = format!("give the socket of `bentpipe emulate --control SOCKET`, or set {SOCKET}");
        return Err(Failure::usage("`--control` is needed", Some(help)));
    };
    let line = serde_json::to_string(&(name, values)).map_err(Failure::broken)?;
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
    let Ok(done) = serde_json::from_str::<Done>(answer) else {
        return Err(Failure::usage("the emulation ended before it answered", None));
    };
    match is_json {
        true => output::print_json(&done)?,
        false => output::print(&format!("{done}\n"))?,
    }
    Ok(End::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_a_link_can_change() {
        assert_eq!(known("sat", "delay"), Ok(()));
        assert_eq!(known("sat", "queue.limit"), Ok(()));
        let said = |key| known("sat", key).expect_err("it is refused");
        assert_eq!(said("dealy"), "`sat` has no setting `dealy`: did you mean `delay`?");
        assert!(said("links").contains("has no setting `links`: ") && said("colour").contains("delay='40 ms'"));
        assert!(said("name").contains("cannot change while it runs"));
        assert_eq!(said("forward.queue"), "the direction belongs to the name: link set sat/forward queue=..");
    }

    /// Only the queue's limit follows a schedule, whether it is given by itself or in the queue's table.
    #[test]
    fn a_scheduled_setting_cannot_be_set() {
        let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nfrom = \"A\"\nto = \"B\"\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n\
            queue = { limit = \"20 packets\" }\nschedule = [{ at = \"1 s\", queue = \"50 packets\" }]\n";
        let scenario = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let refused = ["queue", "queue.limit", "queue.discipline", "rate", "delay", "loss"];
        let refused = refused.map(|key| follows(&scenario.links[0], key));
        assert_eq!(refused, [true, true, false, false, false, false]);
    }

    /// In the outages of phases another loss counts than the link's.
    #[test]
    fn a_fade_loses_all_in_outages_too() {
        let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nfrom = \"A\"\nto = \"B\"\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n\
            phases = { length = \"15 s\", outage = \"1 s\", loss = \"50 %\" }\n";
        let scenario = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(faded(&scenario.links[0]).config.phases.map(|phases| phases.loss), Some(Track::ONE));
        let waits = Scenario::parse(&text.replace(", loss = \"50 %\"", ""), "t.toml", &[]).expect("a scenario");
        assert_eq!(faded(&waits.links[0]).config.phases, waits.links[0].config.phases, "packets only wait");
    }

    #[test]
    fn a_length_without_a_unit() {
        assert_eq!(length("3 s"), Ok(Duration::from_millis(3000)));
        assert_eq!(length("3").expect_err("no unit"), "`3` has no unit: write for example \"3 ms\"");
        assert!(length("0 s").expect_err("no time").contains("longer than 0 s"));
    }

    #[test]
    fn a_mistake_is_shown_as_it_was_typed() {
        let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n";
        let sets = [("links.sat/forward.rate".to_owned(), "5 Mbid/s".to_owned())];
        let resolved = Scenario::parse(text, "t.toml", &[]).expect("a scenario").to_toml();
        let errors = Scenario::parse(&resolved, TYPED, &sets).expect_err("no unit");
        let shown = as_typed(errors, "links.sat/forward.").to_string();
        assert!(shown.contains("--> link set:1:6\n") && shown.contains("\n1 | rate=5 Mbid/s\n"), "{shown}");
        assert!(shown.contains("\n  |      ^"), "{shown}");
    }
}
