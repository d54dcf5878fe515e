//! Redis: one server and a cluster, started here.

use crate::server::{Server, cluster, cluster_address, there_is_redis};
use crate::{WITHIN, conformance::conforms, look, record};
use quintet::store::*;
use std::time::{Duration, Instant};

const PLAIN: &[&str] = &["--save", ""];

fn open(address: &str) -> Box<dyn Store> {
    try_open(address).unwrap()
}

fn try_open(address: &str) -> Result<Box<dyn Store>, StoreError> {
    address.parse::<StoreAddress>().unwrap().open()
}

/// Asks until the store answers again.
fn when_it_answers<T>(mut ask: impl FnMut() -> Result<T, StoreError>) -> T {
    let since = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(since.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn redis_conforms() {
    if !there_is_redis() {
        return;
    }
    let server = Server::start("single", PLAIN);
    conforms(&*open(&format!("{}?timeout=20s", server.address())));
}

#[test]
fn a_cluster_conforms() {
    if !there_is_redis() {
        return;
    }
    let Some(nodes) = cluster("cluster") else { return };
    conforms(&*open(&format!("{}?timeout=20s", cluster_address(&nodes))));
    // One node leads to the others, if it is said to be one of a cluster.
    let one = open(&format!("{}?cluster=yes", nodes[0].address()));
    assert!(look(&*one, b"batch:7").is_some());
    let keys: Vec<String> = (0..50).map(|number| format!("moved:{number}")).collect();
    let error = match try_open(&nodes[0].address()) {
        Err(error) => error,
        Ok(alone) => {
            let batch: Vec<_> = keys.iter().map(|key| record(key.as_bytes(), 1, b"v")).collect();
            alone.put(&batch, WITHIN).unwrap_err()
        }
    };
    assert!(error.to_string().contains("cluster=yes"), "{error}");
}

#[test]
fn databases_and_prefixes_are_apart() {
    if !there_is_redis() {
        return;
    }
    let server = Server::start("apart", PLAIN);
    let places =
        ["", "/3", "?prefix=other:"].map(|end| open(&format!("{}{end}", server.address())));
    for (at, store) in places.iter().enumerate() {
        store.put(&[record(b"key", 1, &[at as u8])], WITHIN).unwrap();
    }
    for (at, store) in places.iter().enumerate() {
        assert_eq!(look(&**store, b"key"), Some((1, vec![at as u8])));
    }
}

#[test]
fn a_password_is_needed_and_never_shown() {
    if !there_is_redis() {
        return;
    }
    let server = Server::start("auth", &["--save", "", "--requirepass", "open sesame"]);
    let wrong = [server.address(), format!("redis://:wrong@127.0.0.1:{}", server.port)];
    for address in &wrong {
        let error = try_open(address).unwrap_err();
        assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
        assert!(!error.to_string().contains("wrong@"), "{error}");
    }
    let store = open(&format!("redis://:open%20sesame@127.0.0.1:{}", server.port));
    store.put(&[record(b"key", 1, b"value")], WITHIN).unwrap();
    assert_eq!(look(&*store, b"key"), Some((1, b"value".to_vec())));
    assert!(!format!("{store:?}").contains("sesame"));
}

/// Through TLS, with a certificate that is trusted because the environment says so.
#[cfg(feature = "redis-tls")]
#[test]
fn tls_is_spoken_and_certificates_are_verified() {
    use crate::dir::Dir;
    use quintet_testkit::crash::Child;
    use std::process::Command;
    if !there_is_redis() {
        return;
    }
    let dir = Dir::new("tls");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (root, root_key, certificate, key) =
        (file("root"), file("root-key"), file("certificate"), file("key"));
    let made = |further: &[&str]| {
        let mut make = Command::new("openssl");
        make.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]).args(further);
        make.output().is_ok_and(|made| made.status.success())
    };
    let names = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ];
    let signed = [
        "-CA",
        &root,
        "-CAkey",
        &root_key,
        "-subj",
        "/CN=localhost",
        "-keyout",
        &key,
        "-out",
        &certificate,
    ];
    if !made(&["-subj", "/CN=root", "-keyout", &root_key, "-out", &root])
        || !made(&[signed.as_slice(), &names].concat())
    {
        println!("skipped: no openssl here that makes certificates (apt-get install openssl)");
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    let files =
        ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &root];
    let tls = [&["--save", "", "--tls-port", &port, "--tls-auth-clients", "no"], files.as_slice()]
        .concat();
    let _server = Server::start("tls-server", &tls);
    let address = format!("rediss://localhost:{port}");
    let error = try_open(&address).unwrap_err();
    assert!(error.to_string().to_ascii_lowercase().contains("certificate"), "{error}");
    // What is trusted is read from the environment, so another process does that.
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["redis::tls_child", "--exact", "--nocapture"]).env("SSL_CERT_FILE", &root);
    let child = Child::of(command, &address).unwrap();
    assert_eq!(child.line(Duration::from_secs(60)).as_deref(), Some("stored and found"));
}

/// The trusting half of the story above; in the parent's own run it does nothing.
#[cfg(feature = "redis-tls")]
#[test]
fn tls_child() {
    let Some(address) = quintet_testkit::crash::task() else { return };
    let store = open(&address);
    store.put(&[record(b"key", 1, b"value")], WITHIN).unwrap();
    assert_eq!(look(&*store, b"key"), Some((1, b"value".to_vec())));
    quintet_testkit::crash::report("stored and found");
}

#[test]
fn a_server_that_is_not_there_is_told_and_left_alone() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = try_open(&format!("redis://127.0.0.1:{port}")).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// The server is killed and comes back with what it had acknowledged; the store finds it again by
/// itself, scripts included.
#[test]
fn a_server_that_comes_back_is_found_again() {
    if !there_is_redis() {
        return;
    }
    let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start("back", &durable);
    let store = open(&server.address());
    for version in 1..=5u64 {
        let value = version.to_be_bytes();
        let put = [record(b"key", version, &value)];
        when_it_answers(|| store.put(&put, WITHIN));
        server.kill();
        assert!(matches!(store.get(&[b"key"]), Err(StoreError::Unavailable(_))));
        // Left alone: told at once, without a connection.
        assert!(matches!(store.put(&put, WITHIN), Err(StoreError::Unavailable(_))));
        assert!(server.run());
        let found = when_it_answers(|| store.get(&[b"key"])).pop().flatten().unwrap();
        assert_eq!((found.version, found.value), (version, version.to_be_bytes().to_vec()));
        assert_eq!(
            when_it_answers(|| store.put(&[record(b"key", version - 1, b"old")], WITHIN)),
            0
        );
    }
    assert!(store.stats().reconnects >= 5 && store.stats().errors >= 10, "{:?}", store.stats());
}

/// The server stands still: an operation ends with its time-out, and what had been sent does not
/// take effect after the deadline.
#[test]
fn what_a_server_reads_after_the_deadline_it_does_not_take() {
    if !there_is_redis() {
        return;
    }
    let server = Server::start("late", PLAIN);
    let store = open(&format!("{}?timeout=300ms", server.address()));
    store.put(&[record(b"key", 1, b"one")], WITHIN).unwrap();
    server.signal(libc::SIGSTOP);
    let sent = Instant::now();
    let within = Duration::from_millis(700);
    let error = store.put(&[record(b"key", 2, b"two")], within).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    while sent.elapsed() < within + Duration::from_millis(50) {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.signal(libc::SIGCONT);
    for _ in 0..20 {
        let found = when_it_answers(|| store.get(&[b"key"])).pop().flatten().unwrap();
        assert_eq!((found.version, found.value), (1, b"one".to_vec()), "the put came too late");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A node of a cluster dies and comes back: errors meanwhile, then every key can be stored again.
#[test]
fn a_node_of_a_cluster_that_comes_back_is_found_again() {
    if !there_is_redis() {
        return;
    }
    let Some(mut nodes) = cluster("node") else { return };
    let store = open(&cluster_address(&nodes));
    let keys: Vec<String> = (0..60).map(|number| format!("node:{number}")).collect();
    let batch = |version| keys.iter().map(move |key| record(key.as_bytes(), version, b"value"));
    let named: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    assert_eq!(store.put(&batch(1).collect::<Vec<_>>(), WITHIN), Ok(60));
    nodes[1].kill();
    assert!(store.get(&named).is_err());
    assert!(nodes[1].run());
    let second: Vec<_> = batch(2).collect();
    when_it_answers(|| store.put(&second, WITHIN));
    let found = when_it_answers(|| store.get(&named));
    assert!(found.iter().flatten().all(|found| found.version == 2));
    assert_eq!(found.iter().flatten().count(), 60);
}
