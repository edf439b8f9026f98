//! temporary
use bentpipe_script::{Options, Verdict, run, host::Profile};
fn main() {
    let mut args = std::env::args().skip(1);
    let profile = Profile::named(&args.next().unwrap()).unwrap();
    let mut o = Options::new(profile);
    let d = args.next().unwrap();
    if d != "-" { o.defined = vec![d]; }
    let verbose = std::env::var("V").is_ok();
    for f in args {
        let Ok(text) = std::fs::read_to_string(&f) else { println!("{f}: not utf8"); continue };
        let r = std::panic::catch_unwind(|| run(&text, &o));
        match r {
            Err(_) => println!("PANIC {f}"),
            Ok(Err(m)) => println!("MISTAKE {f}:{m}"),
            Ok(Ok(p)) => {
              if verbose { for l in &p.packets { println!("   {l}") } }
              match p.verdict {
                Verdict::Passes => println!("PASS {f}"),
                Verdict::Fails(d) => println!("FAIL {f}:{}: expected {} | got {}", d.line, d.expected, d.got),
                Verdict::Unsupported(u) => println!("UNSUP {f}: {}", u.join("; ")),
            }}
        }
    }
}
