//! `TwinMap` under tokio: guards across `.await`, on one thread and on several.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::TwinMap;
use quintet::twin_map::GuardError;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const LONG: Duration = Duration::from_secs(60);

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_time().build().unwrap(),
        Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap(),
    ]
}

/// A handler holds a version while it waits for something, and a configuration is loaded anew
/// meanwhile, by calls that block the thread: on a runtime of one thread the handler could never go
/// on if they waited for it.
#[test]
fn a_guard_across_an_await_holds_up_no_write() {
    for runtime in runtimes() {
        let map = Arc::new(TwinMap::from([("port", 1)]));
        runtime.block_on(async {
            let (done, is_done) = tokio::sync::oneshot::channel::<()>();
            let handler = tokio::spawn({
                let map = Arc::clone(&map);
                async move {
                    let (old, mut new) = (map.owned_pin(), Vec::new());
                    for n in 2..6 {
                        map.insert("port", n);
                        new.push(map.owned_pin());
                        tokio::task::yield_now().await;
                    }
                    is_done.await.unwrap();
                    let seen: Vec<_> = new.iter().map(|version| version["port"]).collect();
                    (old["port"], seen)
                }
            });
            for n in 0..20 {
                tokio::task::yield_now().await;
                map.insert("other", n);
                map.batch_async(|write| write.insert("another", n)).await.unwrap();
            }
            while map.get("port").as_deref() != Some(&5) {
                tokio::task::yield_now().await;
            }
            done.send(()).unwrap();
            let answer = tokio::time::timeout(LONG, handler).await.expect("a hang").unwrap();
            assert_eq!(answer, (1, vec![2, 3, 4, 5]));
        });
        assert_eq!(map.get("another").as_deref(), Some(&19));
    }
}

/// Many tasks write and wait for each other's versions; a guard that stays on its thread lives
/// between two awaits.
#[test]
fn tasks_write_and_wait_for_versions() {
    for runtime in runtimes() {
        let map = Arc::new(TwinMap::<u64, u64>::new());
        let reader = map.handle();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..8u64)
                .map(|task| {
                    let map = Arc::clone(&map);
                    tokio::spawn(async move {
                        for n in 0..50 {
                            map.batch_async(|write| write.insert(task * 100 + n, n)).await?;
                            let len = map.pin().len();
                            assert!(len > n as usize);
                            tokio::task::yield_now().await;
                        }
                        Ok::<(), GuardError>(())
                    })
                })
                .collect();
            let last = tokio::time::timeout(LONG, reader.wait_for_async(400)).await;
            assert_eq!(last.expect("a hang").unwrap().len(), 400);
            for task in tasks {
                task.await.unwrap().unwrap();
            }
        });
    }
}

/// On one thread a task may keep a thread's guard across an `.await`. Who would wait for it is
/// told.
#[test]
fn guards_of_the_thread_across_an_await_are_told() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let map = TwinMap::from([(0, 0)]);
    runtime.block_on(async {
        let first = map.pin();
        map.insert(1, 1);
        let second = map.pin();
        tokio::task::yield_now().await;
        map.insert(2, 2);
        assert_eq!(
            map.batch_async(|write| write.insert(3, 3)).await,
            Err(GuardError::WouldDeadlock)
        );
        assert_eq!((first.len(), second.len(), map.len()), (1, 2, 3));
        drop(first);
        map.batch_async(|write| write.insert(3, 3)).await.unwrap();
        assert_eq!((second.len(), map.len()), (2, 4));
    });
}
