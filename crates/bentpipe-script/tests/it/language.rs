//! The language: which scripts are refused, with which message, and that no input makes the parser panic.

use bentpipe_script::host::Profile;
use bentpipe_script::lang::Refusal;
use bentpipe_script::lang::ast::{Action, Body, TcpOption, When};
use bentpipe_script::lang::code::{Fault, compile};
use bentpipe_script::lang::parse::parse;
use bentpipe_script::{Options, Verdict, run};
use proptest::prelude::*;

/// Each mistake, its position, and its message.
#[test]
fn mistakes_are_refused() {
    let mistakes = [
        ("0 soket 3", "1:9: `3`: expected `(`"),
        ("x socket(...) = 3", "1:1: `x`: expected a time in seconds"),
        ("+ < S 0:0(0)", "1:3: `<`: expected a time in seconds"),
        ("0 socket(... = 3", "1:14: `=`: expected `,` or `)`"),
        ("0 socket(...)", "1:1: the script ends here: expected `=`"),
        ("0 socket(...) =", "1:1: the script ends here: expected an argument"),
        ("0 < Q 0:0(0)", "1:5: `Q`: expected flags"),
        ("0 < . 1:1001(999)", "1:9: `1:1001(999)`: expected start plus length to equal the end"),
        ("0 < . 1:1(0) ack", "1:1: the script ends here: expected an acknowledgement number"),
        ("0 < . 1:1(0) win 65536", "1:18: `65536`: expected a window, at most 65535"),
        ("0 < . 1:1(0) ack 1 <sak 1:2>", "1:21: `sak`: expected nop, eol, mss"),
        ("0 < . 1:1(0) ack 1 <mss 1", "1:1: the script ends here: expected `,` or `>`"),
        ("0 < . 1:1(0) ack 1 <sack>", "1:25: `>`: expected a block"),
        ("0 < . 1:1(0) <TS val 1>", "1:23: `>`: expected `ecr`"),
        ("0 > (tos 300) . 1:1(0)", "1:10: `300`: expected a byte, at most 255"),
        ("0 > (color 3) . 1:1(0)", "1:6: `color`: expected ect0"),
        ("0 < S 0:0(0) <mss 1,TS val 1 ecr 1,sack 1:2 3:4 5:6 7:8>", "bytes of options: expected at most 40"),
        ("2~1 > . 1:1(0)", "1:3: the range ends before it starts"),
        ("+1~2 > . 1:1(0)", "1:4: `2`: expected `+`"),
        ("* ...1 read(3, ..., 1) = 1", "1:3: a blocking call must start at one instant"),
        ("99999999999 read(3, ..., 1) = 1", "expected a time below ten million seconds"),
        ("0 %{ assert x", "1:3: `%{` without `}%`"),
        ("0 `ls", "1:3: command without a closing backtick"),
        ("0 socket(\"a", "1:10: unterminated string"),
        ("/* never", "1:1: `/*` without `*/`"),
        ("#ifdef A\n0 `true`", "1:1: `#ifdef` without `#endif`"),
        ("#endif", "1:1: `#endif` without `#ifdef`"),
        ("", "1:1: the script is empty: expected an event"),
        ("\u{feff}\r\n", "1:1: the script is empty: expected an event"),
        ("\u{feff}0 soket 3", "1:9: `3`: expected `(`"),
        ("#else", "1:1: `#else` without `#ifdef`"),
        ("#include <a>", "expected #ifdef, #ifndef, #else or #endif"),
        ("0 ? 1", "1:3: unexpected character `?`"),
        ("--=1\n0 `true`", "1:1: `--=1`: expected --name=value"),
        ("0 f([[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]) = 0", "expected fewer brackets"),
    ];
    for (script, message) in mistakes {
        match parse(script, &[]) {
            Err(Refusal::Mistake(mistake)) => {
                assert!(mistake.to_string().contains(message), "`{script}`: {mistake}")
            }
            other => panic!("`{script}` was taken: {other:?}"),
        }
    }
}

/// An event cannot come before the one in the line above it.
#[test]
fn times_do_not_go_back() {
    let bind = "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3";
    for (script, mistake) in [
        (format!("0.5 {bind}\n0.4 close(3) = 0"), "2:1: `0.4`: expected a time that is not before 0.5 s"),
        (format!("0.5 {bind}\n+.1 close(3) = 0\n * > . 1:1(0)\n0.55 < . 1:1(0)"), "4:1: `0.55`: expected a time"),
        (format!("0.1~0.5 > . 1:1(0)\n+.1 {bind}\n0.1~0.15 > . 1:1(0)"), "3:1: `0.1`: expected a time"),
    ] {
        match parse(&script, &[]) {
            Err(Refusal::Mistake(found)) => assert!(found.to_string().starts_with(mistake), "{found}"),
            other => panic!("{other:?}"),
        }
    }
    // The same instant, a range that reaches beyond it, and times since the one before.
    for script in [
        format!("0.5 {bind}\n0.5 close(3) = 0"),
        format!("0.5 {bind}\n0.4~0.6 > . 1:1(0)\n+0 close(3) = 0"),
        format!("0.5 {bind}\n+0 close(3) = 0\n`yes`\n0.5 < . 1:1(0)"),
    ] {
        assert!(parse(&script, &[]).is_ok(), "{script}");
    }
}

/// Settings are looked at when a script is played.
#[test]
fn settings_are_refused() {
    for (script, message) in [
        ("--mtu=10\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "--mtu: expected a number from 68 to 65535"),
        ("--ip_version=5\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "--ip_version: expected ipv4"),
        ("--colour=red\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "--colour: no such setting"),
        ("--variant=illinois\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "--variant: no such variant"),
        // With these values the engine's own checks failed.
        ("--iw=0", "--iw: expected a number from 1 to 4294967295"),
        ("--fixed-window=0", "--fixed-window: expected a number from 1 to"),
        ("--ssthresh=0", "--ssthresh: expected a number from 1 to"),
        ("--ticks=0", "--ticks: expected a number from 1 to"),
        ("--buffer=0", "--buffer: expected a number from 1 to 1073725440"),
        ("--buffer=4294967295", "--buffer: expected a number from 1 to 1073725440"),
    ] {
        let mistake = run(script, &Options::new(Profile::Rfc)).expect_err(script);
        assert!(mistake.to_string().contains(message), "{mistake}");
    }
}

#[test]
fn a_script_to_its_tree() {
    let script = parse(
        "// comment\n--tolerance_usecs=1 --mtu=\"1500\"\n#ifdef B\n0 `no`\n#else\n`yes`\n#endif\n\
         +.1~+0.25 > (tos 0x20) 8080 > 40000 FP. 1:11(10)! ack 7 win 9 <nop,sack 1:2 3:4,TS val 5 ecr 6,...\n",
        &["A".to_owned()],
    );
    assert!(script.is_err(), "`...` stands alone");
    let script = parse(
        "// comment\n--tolerance_usecs=1 --mtu=\"1500\"\n#ifdef B\n0 `no`\n#else\n`yes`\n#endif\n\
         +.1~+0.25 > (tos 0x20) 8080 > 40000 FP. 1:11(10)! ack 7 win 9 <nop,sack 1:2 3:4,TS val 5 ecr 6>\n",
        &["A".to_owned()],
    )
    .expect("sound");
    assert_eq!(script.settings.len(), 2);
    assert_eq!(script.settings[1].value.as_deref(), Some("1500"));
    assert_eq!((script.events[0].line, &script.events[0].action), (6, &Action::Command("yes".into())));
    let event = &script.events[1];
    assert_eq!((event.line, event.when), (8, When::AfterBetween(100_000, 250_000)));
    let Action::Outbound(packet) = &event.action else { panic!("{event:?}") };
    assert_eq!((packet.tos, packet.ports), (Some(0x20), Some((8080, 40_000))));
    let Body::Tcp(tcp) = &packet.body else { panic!("{packet:?}") };
    assert_eq!((tcp.flags, tcp.seq, tcp.len, tcp.is_absolute), (0x19, Some(1), 10, true));
    assert_eq!((tcp.ack, tcp.window), (Some(7), Some(9)));
    let options = [TcpOption::Nop, TcpOption::Sack(vec![(1, 2), (3, 4)]), TcpOption::Timestamps(5, 6)];
    assert_eq!(tcp.options.as_deref(), Some(&options[..]));
}

#[test]
fn code_is_python() {
    let holds = |text: &str| {
        let code = compile(text).unwrap_or_else(|error| panic!("{error}"));
        code.run(&mut Default::default(), &|name| (name == "x").then_some(7.0))
    };
    for text in [
        "assert x == 7, 'no'",
        "assert 6 < x <= 7 and not x == 8",
        "y = 2\ny += x; assert y == 9 # so it is",
        "assert (x & 3) == 3, x; assert x | 8 == 15",
        "print(x); assert 2 + 3 * 2 == 8 or x == 0",
        "assert -x == 0 - 7 and 0x10 == 16 and 7 / 2 == 3.5 and 7 // 2 == 3 and 1 << 3 == 8",
        "assert x == 7 or unknown == 1",
        // The remainder has the sign of the divisor; shifted far enough, nothing is left but the sign.
        "assert -x % 3 == 2 and x % -3 == -2 and -x % -3 == -1 and x % 3 == 1 and 7.5 % 2 == 1.5",
        "assert x >> 1 == 3 and x >> 64 == 0 and -x >> 1 == -4 and -x >> 5000 == -1",
        "assert 1 << 64 == 0x10000000 * 0x1000000000 and 0 << 5000 == 0",
    ] {
        assert_eq!(holds(text), Ok(()), "{text}");
    }
    assert_eq!(holds("assert x > 7, 'no'"), Err(Fault::Fails("x > 7".into(), vec![("x".into(), 7.0)])));
    assert_eq!(holds("assert y == 1"), Err(Fault::Unknown("y".into())));
    for text in ["assert 1 / 0 == 1", "assert 1 % 0 == 1", "assert 1 << -1 == 1", "assert 1 >> -1 == 1"] {
        assert!(matches!(holds(text), Err(Fault::Undefined(_))), "{text}");
    }
    for text in ["import os", "assert x ==", "assert (x", "x =", "assert x ? 1", "assert 1x == 1"] {
        assert!(compile(text).is_err(), "{text}");
    }
}

#[test]
fn long_expressions_are_refused() {
    for text in ["1+".repeat(100_000), "-".repeat(100_000), "not ".repeat(100_000)] {
        let error = compile(&format!("assert {text}1")).expect_err("too long");
        assert!(error.ends_with("expected at most 1000"), "{}", &error[..60]);
    }
    assert_eq!(compile("assert é"), Err("` é`: unexpected `é`".to_owned()));
}

/// Unsupported features are named, whatever else is wrong with the script.
#[test]
fn features_are_named() {
    for (script, feature) in [
        ("0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+0 > sctp: INIT[flgs=0]", "SCTP"),
        ("0 socket(..., SOCK_DGRAM, 0) = 3", "UDP"),
        ("0 < S 0:0(0) win 1 <mss 1,FO 0011>", "TCP Fast Open"),
        ("0 < S 0:0(0) win 1\n0 `sysctl -w net.ipv4.tcp_ecn_option=0`", "a setting that changes while connected"),
        ("0 < U. 1:1(0) ack 1 win 1 urg 1", "urgent data"),
        ("`sysctl -w net.inet.tcp.ecn.enable=4`", "accurate ECN"),
        ("`rm -rf /`", "shell commands beyond sysctl and sockstat"),
        ("0 splice(1, 2, 3) = 0", "the call splice"),
        ("0 setsockopt(3, SOL_TCP, TCP_USER_TIMEOUT, [1], 4) = 0", "socket option TCP_USER_TIMEOUT"),
        ("0 %{ assert tcpi_backoff == 1 }%", "TCP_INFO: tcpi_backoff"),
        ("0 %{ assert tcpi_state_name == 1 }%", "TCP_INFO: tcpi_state_name"),
        ("0 %{ import os }%", "Python beyond assertions"),
        ("`sysctl -w net.ipv4.tcp_recovery=3`", "sysctl tcp_recovery"),
        ("0 close(3) = 0\n0 read(3, ..., 1) = 1", "calls on closed descriptors"),
    ] {
        let played = run(script, &Options::new(Profile::Linux)).expect(script);
        assert_eq!(played.verdict, Verdict::Unsupported(vec![feature.to_owned()]), "{script}");
    }
}

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "0",
            "+0",
            "+.1",
            "*",
            "0.1~0.3",
            "+0...0.2",
            "<",
            ">",
            "S",
            "S.",
            ".",
            "F.",
            "R",
            "P.",
            "-",
            "0:0(0)",
            "1:1(0)",
            "1:1001(1000)",
            "ack 1",
            "win 100",
            "<mss 1000>",
            "<mss 1000,sackOK,TS val 1 ecr 0,wscale 2>",
            "<sack 1:2>",
            "<...>",
            "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "bind(3, ..., ...) = 0",
            "listen(3, 1) = 0",
            "accept(3, ..., ...) = 4",
            "connect(3, ..., ...) = 0",
            "write(4, ..., 1000) = 1000",
            "read(4, ..., 10) = 10",
            "close(4) = 0",
            "shutdown(4, SHUT_WR) = 0",
            "`true`",
            "%{ assert tcpi_state == 1 }%",
            "icmp unreachable",
            "\n",
            "#ifdef A\n",
            "#endif\n",
            "setsockopt(3, SOL_SOCKET, SO_SNDBUF, [1], 4) = 0",
            "getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0",
        ])
        .prop_map(str::to_owned),
        "[ -~\n]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Neither noise nor a script's own words in any order make the parser or the player panic.
    #[test]
    fn nothing_panics(words in prop::collection::vec(token(), 0..40)) {
        let text = words.join(" ");
        for profile in [Profile::Linux, Profile::FreeBsd, Profile::Rfc] {
            let _ = run(&text, &Options::new(profile));
        }
    }

    #[test]
    fn noise_does_not_panic(text in "\\PC{0,200}") {
        let _ = parse(&text, &[]);
        let _ = compile(&text);
    }
}
