use super::*;

#[test]
fn lines_are_read_as_they_are_written() {
    let all = [
        Made::Namespace("bentpipe-1-client".into()),
        Made::Table("bentpipe_1".into()),
        Made::Setting("net/ipv4/ip_forward".into(), "0".into()),
        Made::Folder("of-1-2-0-0".into()),
    ];
    for made in all {
        assert_eq!(Made::parse(&made.line()), Some(made));
    }
    assert_eq!(Made::parse("namespace"), None);
}

#[test]
fn a_record_lives_as_long_as_its_run() {
    let folder = std::env::temp_dir().join(format!("bentpipe-session-{}", std::process::id()));
    let count = || std::fs::read_dir(&folder).expect("a folder").count() - 1;
    let mut first = Session::begin_in(&folder).expect("a folder for all");
    let path = "net/ipv4/no_such_setting".to_owned();
    first.note(Made::Setting(path.clone(), "1".into())).expect("writable");
    let second = Session::begin_in(&folder).expect("a folder for all");
    assert_eq!((first.number(), second.number()), (0, 1));
    // The second run has not treated the first one as dead.
    assert_eq!((count(), living(&folder, None).expect("readable")), (2, vec![Made::Setting(path, "1".into())]));
    drop(second);
    assert_eq!(count(), 1);
    // A record without a lock belongs to a dead run, and the next run removes it and what it records.
    let (dead, keys) = (folder.join(format!("{}-999999-0", network())), folder.join("of-999999"));
    std::fs::write(&dead, "folder no-such-folder\nfolder of-999999\n").expect("writable");
    std::fs::create_dir(&keys).and_then(|()| std::fs::write(keys.join("key"), "secret")).expect("writable");
    drop(Session::begin_in(&folder).expect("a folder for all"));
    assert!(!dead.exists() && !keys.exists());
    // A run's own folders are private, and are removed with it.
    let mut third = Session::begin_in(&folder).expect("a folder for all");
    let own = [(); 2].map(|()| third.private_folder().expect("writable"));
    assert!(own[0] != own[1] && own.iter().all(|own| own.metadata().is_ok_and(|own| own.mode() & 0o777 == 0o700)));
    std::fs::write(own[1].join("key"), "secret").expect("writable");
    drop(third);
    assert!(!own.iter().any(|own| own.exists()));
    drop(first);
    assert!(!folder.exists(), "nothing is left where no system cleans up");
}

/// A run of root without all rights, as in a container, deleted the records of what it could not remove, so it stayed for ever.
#[test]
fn the_record_of_what_cannot_be_removed_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let (dead, keys) = (folder.path().join(format!("{}-999999-0", network())), folder.path().join("of-999999"));
    // What is no folder is not removed as one, whatever the rights.
    std::fs::write(&dead, "folder of-999999\n").and_then(|()| std::fs::write(&keys, "")).expect("writable");
    drop(Session::begin_in(folder.path()).expect("a folder for all"));
    assert!(dead.exists());
    std::fs::remove_file(&keys).and_then(|()| std::fs::create_dir(&keys)).expect("writable");
    drop(Session::begin_in(folder.path()).expect("a folder for all"));
    assert!(!dead.exists() && !keys.exists());
}

/// The folder of a user namespace outlives the namespace if its run is killed. The next run of the same user removes it.
#[test]
fn folders_of_ended_user_namespaces_are_removed() {
    let all = tempfile::tempdir().expect("a folder");
    let of = |name: &str| all.path().join(name);
    let make = |name: &str, record: bool| {
        std::fs::DirBuilder::new().mode(0o700).create(of(name)).expect("writable");
        std::fs::write(of(name).join("lock"), "").expect("writable");
        if record {
            std::fs::write(of(name).join("4026-7-0"), "folder of-4026-7-0-0\n").expect("writable");
            std::fs::create_dir(of(name).join("of-4026-7-0-0")).expect("writable");
            std::fs::write(of(name).join("of-4026-7-0-0/near.key"), "secret").expect("writable");
        }
    };
    ["bentpipe-1", "bentpipe-2", "bentpipe-shell", "bentpipe-", "other-1"]
        .into_iter()
        .for_each(|name| make(name, true));
    make("bentpipe-3", false);
    let living = Session::begin_in(&of("bentpipe-4")).expect("a folder");
    // Another user could have made the last one.
    std::fs::set_permissions(of("bentpipe-2"), Permissions::from_mode(0o777)).expect("it is ours");
    remove_left(&of("bentpipe-5"));
    let mut left: Vec<_> =
        std::fs::read_dir(all.path()).expect("readable").flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["bentpipe-", "bentpipe-2", "bentpipe-3", "bentpipe-4", "bentpipe-shell", "other-1"]);
    // In its own folder the record may be of a network namespace that still exists.
    make("bentpipe-5", true);
    remove_left(&of("bentpipe-5"));
    assert!(!of("bentpipe-5/of-4026-7-0-0").exists() && of("bentpipe-5/4026-7-0").exists());
    drop(living);
}

/// A run that is killed while it removes its items still has a record, so that the next run removes the rest.
#[test]
fn a_record_outlives_its_items() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session::begin_in(folder.path()).expect("a folder for all");
    let path = "net/ipv4/no_such_setting".to_owned();
    let made = [Made::Table("no_such_table".into()), Made::Setting(path, "1".into())];
    for made in made.clone() {
        session.note(made).expect("writable");
    }
    let undone = std::cell::RefCell::new(Vec::new());
    session.end(|made, others| {
        assert_eq!(read(&File::open(&session.path).expect("a record")).expect("readable"), session.made);
        assert_eq!(others, [], "the run itself needs its items no longer");
        undone.borrow_mut().push(made.clone());
    });
    assert_eq!(undone.into_inner(), [made[1].clone(), made[0].clone()]);
    assert!(!session.path.exists());
}

#[test]
fn a_record_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "").expect("room");
    let told = |folder: &Path| Session::begin_in(folder).expect_err("it is refused").to_string();
    assert!(told(&path).starts_with(&format!("{}: ", path.display())), "{}", told(&path));
    std::fs::create_dir(folder.path().join("lock")).expect("room");
    let lock = folder.path().join("lock");
    assert!(told(folder.path()).starts_with(&format!("{}: ", lock.display())), "{}", told(folder.path()));
}

#[test]
fn a_setting_that_cannot_be_changed_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session::begin_in(folder.path()).expect("a folder for all");
    let told = session.set("net/ipv4/no_such_setting", "1").expect_err("there is none").to_string();
    assert!(told.starts_with("/proc/sys/net/ipv4/no_such_setting: "), "{told}");
    assert_eq!(session.made, []);
}

/// Otherwise, that user could make root delete namespaces and change kernel settings.
#[test]
fn records_of_others_are_not_carried_out() {
    let folder = std::env::temp_dir().join(format!("bentpipe-shared-{}", std::process::id()));
    drop(Session::begin_in(&folder).expect("a folder of our own"));
    std::fs::create_dir(&folder).expect("it was removed");
    let is_refused = || Session::begin_in(&folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    for mode in [0o777, 0o720, 0o702] {
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).expect("it is ours");
        assert!(is_refused(), "{mode:o}: others can write there");
    }
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
    // Only root may give it away.
    assert!(std::os::unix::fs::chown(&folder, Some(1), None).is_err() || is_refused(), "it is another user's");
    std::fs::remove_dir(&folder).expect("nothing is in it");
}

/// A setting is changed as long as a run needs it, and then has its first value again. Another namespace has its own.
#[test]
fn a_setting_lasts_as_long_as_it_is_needed() {
    let Ok(namespace) = crate::linux::namespace::Namespace::fresh() else {
        eprintln!("SKIPPED, not tested: no rights for a network namespace");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let foreign = folder.path().join("1-999999-0");
    let path = "net/ipv4/ip_forward";
    let done = namespace.inside(|| {
        let now = || std::fs::read_to_string(Path::new("/proc/sys").join(path));
        let before = now()?;
        let other = if before.trim() == "0" { "1" } else { "0" };
        std::fs::write(&foreign, "table no_such_table\n")?;
        let [mut first, mut second] = [Session::begin_in(folder.path())?, Session::begin_in(folder.path())?];
        first.set(path, other)?;
        second.set(path, other)?;
        drop(first);
        assert_eq!(now()?.trim(), other);
        drop(second);
        assert_eq!(now()?, before);
        let mut third = Session::begin_in(folder.path())?;
        third.set(path, before.trim())?;
        assert_eq!(third.made, [], "nothing was changed");
        Ok(())
    });
    done.expect("settings can be written");
    assert!(foreign.exists(), "only in its namespace can be removed what it records");
}
