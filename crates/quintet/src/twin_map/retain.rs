//! Taking out what a closure refuses, for maps and sets.

use super::absorb::Absorb;
use super::desk::Desk;
use super::version::{Fallen, Op, Version};
use std::hash::{BuildHasher, Hash};

/// Takes out what `keep` refuses. It is shown clones, with no lock held (`map_write` U1), and again
/// those that have changed since.
pub(super) fn retain<T, K, V, S>(
    desk: &Desk<T, K, V>,
    of: fn(&T) -> &Version<K, V, S>,
    of_mut: fn(&mut T) -> &mut Version<K, V, S>,
    mut keep: impl FnMut(&K, &V) -> bool,
) where
    T: Absorb<Op<K, V>, Old = Fallen<K, V>>,
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher,
{
    let Some(shared) = desk.get() else { return };
    let mut left: Option<Vec<K>> = None;
    loop {
        let watch = shared.watches.set(None);
        let shown = clones(of(&desk.pin()), left.as_deref());
        let refused = shown.into_iter().filter(|(key, value)| !keep(key, value));
        let refused: Vec<K> = refused.map(|(key, _)| key).collect();
        if refused.is_empty() {
            return;
        }
        let again = shared.write(|write| {
            let changed = watch.changed(write.log().iter());
            let has_changed = |key: &K| changed.has(of(write).hash(key));
            let (again, now): (Vec<K>, Vec<K>) = refused.into_iter().partition(has_changed);
            for key in &now {
                let old = write.change(|copy, log| of_mut(copy).remove(log, key));
                write.keep((None, old));
            }
            again
        });
        left = Some(again);
    }
}

/// Clones of all entries, or of those with these keys.
fn clones<K, V, S>(version: &Version<K, V, S>, keys: Option<&[K]>) -> Vec<(K, V)>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher,
{
    let own = |(key, value): (&K, &V)| (key.clone(), value.clone());
    match keys {
        None => version.iter().map(own).collect(),
        Some(keys) => keys.iter().filter_map(|key| version.get_key_value(key)).map(own).collect(),
    }
}
