//! Least recently used: the oldest by age, as [`evict`](crate::tier_cache::cache::evict) finds
//! them.

use super::Choose;
use crate::tier_cache::cache::evict::Ring;
use crate::tier_cache::cache::view::View;

pub(super) struct Lru;

impl Choose for Lru {
    const MOST_USES: u64 = 0;

    fn search(view: &View<'_>, tier: usize, ring: &mut Ring, shunned: &[u32]) {
        view.search_oldest(tier, ring, shunned);
    }
}
