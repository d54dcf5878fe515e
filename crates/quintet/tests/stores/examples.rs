//! The examples, as they are, run here.

#[cfg(feature = "redis")]
#[allow(dead_code)]
#[path = "../../examples/fleet.rs"]
mod fleet;
#[cfg(feature = "lmdb")]
#[allow(dead_code)]
#[path = "../../examples/larger_than_memory.rs"]
mod larger_than_memory;
#[cfg(feature = "lmdb")]
#[allow(dead_code)]
#[path = "../../examples/web_workers.rs"]
mod web_workers;

/// A worker of the example; in the parent's own run it does nothing.
#[cfg(feature = "lmdb")]
#[test]
fn web_workers_child() {
    let Some(task) = quintet_testkit::crash::task() else { return };
    let (name, worker) = task.split_once(' ').unwrap();
    let place = quintet::cache::Place::Name(name.to_owned());
    web_workers::serve(&place, worker.parse().unwrap()).unwrap();
}

#[cfg(feature = "lmdb")]
#[test]
fn web_workers_render_each_page_once() {
    let start = |name: &str, worker: u64| {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(["examples::web_workers_child", "--exact"]);
        command.env("QUINTET_CHILD", format!("{name} {worker}")).spawn()
    };
    assert_eq!(web_workers::run(start).unwrap(), web_workers::PAGES);
}

#[cfg(feature = "lmdb")]
#[test]
fn a_data_set_larger_than_memory_is_found() {
    let [memory, store] = larger_than_memory::run(1).unwrap();
    assert!(memory > 1_000 && store > 3 * memory, "{memory} in memory, {store} in the store");
}

#[cfg(feature = "redis")]
#[test]
fn a_fleet_shares_a_cluster() {
    if !crate::server::there_is_redis() {
        return;
    }
    let Some(nodes) = crate::server::cluster("fleet") else { return };
    let found = fleet::run(&crate::server::cluster_address(&nodes)).unwrap();
    assert!(found > 10_000, "{found}");
}
