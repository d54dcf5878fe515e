//! How a cache is made.

use super::TierCache;
use super::layout::{FORMAT, MAX_SPACES, PROCESS_WORDS, SEAT_BYTES, SPACE_WORDS, Sizes, Stored};
use super::policy::Policy;
use super::stored::Recipe;
use crate::region::shm::{
    Access, LONGEST_NOTE, MAX_PROCESSES, Place, SLOT_BYTES, Segment, SegmentError, Shape,
};
use crate::store::{Credentials, StoreAddress, StoreError};
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::{MapError, OpenError};

/// Sizes and rights of a new cache, and what is asked of one that is there.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CacheBuilder {
    capacity: Option<usize>,
    max_value: Option<usize>,
    block: Option<usize>,
    /// Of entries that were told of.
    usual: Option<usize>,
    seats: Option<u32>,
    processes: Option<u32>,
    no_evict: bool,
    exact: bool,
    leases: bool,
    spaces: Option<u32>,
    sums: bool,
    tiers: Option<u32>,
    promotes: bool,
    policy: Option<Policy>,
    quotas: bool,
    access: Option<Access>,
    any_size: bool,
    any_owner: bool,
    stored: Stored,
    recipe: Recipe,
}

/// The packed words name no more blocks.
const MOST_BLOCKS: u32 = 1 << 30;
/// The capacity of a cache that was not given one.
const CAPACITY: usize = 64 << 20;
/// Bytes of a block that were not chosen, where values are short.
const BLOCK: usize = 128;
/// Values are short up to here; longer ones have about so many blocks.
const SHORT: usize = 1 << 20;
const MANY: usize = SHORT / BLOCK;
/// Handles and processes that were not chosen take at most this part of the capacity, and are at
/// least and at most so many.
const SHARE: usize = 32;
const FEWEST: usize = 4;
const MOST: usize = 4096;
/// Namespaces that were not chosen take at most this part.
const SPACES_SHARE: usize = 64;

impl CacheBuilder {
    /// Bytes of the segment at most, all told: 64 MiB by default. An entry with a key of 16 and a
    /// value of 64 bytes takes about 180.
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Chooses a capacity with room for so many entries of these lengths, and, unless they were
    /// chosen before, blocks that hold them in few bytes.
    pub fn for_entries(mut self, entries: usize, key: usize, value: usize) -> Self {
        let sizes = [128, 256, 512, 1024, 2048, 4096];
        let tried: Vec<(usize, usize)> = match self.block {
            Some(block) => vec![(block, self.bytes_for(block, entries, key, value))],
            None => sizes.map(|block| (block, self.bytes_for(block, entries, key, value))).to_vec(),
        };
        let fewest = tried.iter().map(|(_, bytes)| *bytes).min().unwrap_or(usize::MAX);
        // Of nearly equal ones the largest: longer blocks are fewer.
        let most = fewest.saturating_add(fewest / 16);
        let chosen = tried.iter().rev().find(|(_, bytes)| *bytes <= most);
        (self.usual, self.capacity) = (chosen.map(|(block, _)| *block), Some(usize::MAX));
        if let Some((_, bytes)) = chosen.filter(|(_, bytes)| *bytes < usize::MAX) {
            // Handles and namespaces that were not chosen grow with the capacity: a 21st of it in
            // all, and a page for rounding.
            self.capacity = Some(bytes.saturating_add(bytes / 20 + (1 << 16)));
        }
        self
    }

    /// Bytes of a cache with so many entries of these lengths, in blocks of this size: beyond all
    /// bounds if none can be.
    fn bytes_for(&self, block: usize, entries: usize, key: usize, value: usize) -> usize {
        // A block that is out of range is refused when the cache is made, and so is a capacity
        // beyond all bounds.
        let block_words = (block / 8).clamp(16, 512) as u32;
        let each = Sizes { block_words, ..self.empty(0) };
        let blocks = entries.saturating_mul(each.blocks_for(key, value)).max(64);
        match u32::try_from(blocks) {
            Ok(blocks) if blocks <= MOST_BLOCKS => with_buckets(Sizes { blocks, ..each }).bytes(),
            _ => usize::MAX,
        }
    }

    /// The longest value: by default the smaller of 1 MiB and a 64th of the capacity.
    pub fn max_value(mut self, bytes: usize) -> Self {
        self.max_value = Some(bytes);
        self
    }

    /// Bytes of a block, a power of two from 128 to 4096. Entries take whole blocks. A value of
    /// many blocks is stored faster the fewer there are: of 32 MiB in a sixth of the time if the
    /// blocks have 4096 bytes instead of 128, within twice that of a plain copy.
    ///
    /// By default 128; where the longest value was chosen and is longer than 1 MiB as many as make
    /// about 8192 blocks of it, so that 32 MiB give 4096. [`CacheBuilder::for_entries`] chooses by
    /// the entries it is told of.
    pub fn block(mut self, bytes: usize) -> Self {
        self.block = Some(bytes);
        self
    }

    /// Handles that can write at once, in all processes, 1 to 8192. By default as many as a 32nd of
    /// the capacity holds with as many processes, up to 4096. Readers need none.
    pub fn handles(mut self, seats: u32) -> Self {
        self.seats = Some(seats);
        self
    }

    /// Processes that can have handles at once, 1 to 8192, rounded up to a multiple of 64: by
    /// default as for [`CacheBuilder::handles`].
    pub fn processes(mut self, processes: u32) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Namespaces there can be beside the unnamed one, up to 65,535, each for 128 bytes: by default
    /// as many as a 64th of the capacity holds.
    pub fn namespaces(mut self, most: u32) -> Self {
        self.spaces = Some(most);
        self
    }

    /// Nothing is ever evicted: a set that finds no room returns
    /// [`CacheError::Full`](super::CacheError::Full).
    pub fn no_evict(mut self) -> Self {
        self.no_evict = true;
        self
    }

    /// Every access counts for recency, not only the first in a 128th of the cache's turnover. For
    /// small caches whose hits are few: each access stores to a word all processes share. Under a
    /// [`Policy`] that counts uses, every store counts, and hits store nothing more.
    pub fn exact_recency(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Every entry has a sum (CRC-32C) over its key, its value and where it belongs, which every
    /// lookup verifies: what was damaged in memory or in the file is
    /// [`CacheError::Corrupt`](super::CacheError::Corrupt), not a wrong value. Takes 8 bytes per
    /// block, and gets take longer.
    pub fn checksums(mut self) -> Self {
        self.sums = true;
        self
    }

    /// Tiers by age, 1 (the default) to 4. An entry comes into the first; the oldest of a tier that
    /// has its share of the cache move down, without their bytes; what leaves the cache leaves from
    /// the last. All lookups search from young to old. Each tier can be watched and evicted from by
    /// itself.
    pub fn tiers(mut self, tiers: u32) -> Self {
        self.tiers = Some(tiers);
        self
    }

    /// In a cache with tiers, a lookup that finds its key in an older one moves it to the first.
    pub fn promote(mut self) -> Self {
        self.promotes = true;
        self
    }

    /// Which entry leaves when room is needed: the least recently used by default. See [`Policy`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Accounts are kept of what each namespace and each process has in the cache, so that they can
    /// be held to quotas ([`TierCache::set_quota`]). Takes 8 bytes per block and 64 per namespace
    /// and process, and stores take a little longer.
    ///
    /// ```
    /// use quintet::cache::{Quota, TierCache};
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).quotas().create_sealed()?;
    /// let guests = cache.namespace("guests")?;
    /// cache.set_quota(guests, Quota::default().entries(100))?;
    /// assert_eq!(cache.quota(guests).entries, Some(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quotas(mut self) -> Self {
        self.quotas = true;
        self
    }

    /// Values can be leased, that is read where they lie ([`Handle::lease`](super::Handle::lease));
    /// stores take a little longer.
    pub fn leases(mut self) -> Self {
        self.leases = true;
        self
    }

    /// Who may use the cache: its creator by default.
    pub fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// A cache that is there will do, of whatever sizes and rights: what is asked for here only
    /// counts for a new one.
    pub fn any_size(mut self) -> Self {
        self.any_size = true;
        self
    }

    /// A cache that is there will do, whoever made it. Otherwise it must be this user's own or
    /// root's: anybody can make a cache of any name, and whoever made it can change what is in it.
    pub fn any_owner(mut self) -> Self {
        self.any_owner = true;
        self
    }

    /// What leaves the cache goes to this [store](crate::store), and lookups that miss go on to it.
    /// Its address is recorded in the segment, without credentials, and every process that attaches
    /// opens it. One that cannot evicts nothing: it is told
    /// [`CacheError::NoStore`](super::CacheError::NoStore) when there is no room.
    /// `none` is no store.
    ///
    /// ```
    /// # #[cfg(all(feature = "lmdb", unix))] {
    /// use quintet::cache::{Place, TierCache};
    ///
    /// let place = Place::Name(format!("stored-{}", std::process::id()));
    /// let path = std::env::temp_dir().join(format!("stored-{}", std::process::id()));
    /// let store = format!("lmdb:{}?size=16MiB", path.display());
    /// let cache = TierCache::builder().capacity(1 << 20).store(&store)?.create(&place)?;
    /// for number in 0..20_000_u32 {
    ///     cache.insert(number.to_le_bytes(), [7; 64])?;
    /// }
    /// assert!(cache.get(0_u32.to_le_bytes())?.is_some(), "in the store by now");
    /// TierCache::unlink(&place)?;
    /// # drop(cache);
    /// # std::fs::remove_dir_all(path)?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(mut self, address: &str) -> Result<Self, StoreError> {
        let parsed: StoreAddress = address.parse()?;
        self.stored.0 &= !Stored::HAS;
        if parsed != StoreAddress::None {
            self.stored.0 |= Stored::HAS;
        }
        if let StoreAddress::Redis { credentials, .. } = &parsed {
            if *credentials != Credentials::default() {
                self.recipe.credentials = Some(credentials.clone());
            }
        }
        self.recipe.address = parsed.to_string();
        if self.recipe.address.len() > LONGEST_NOTE {
            return Err(StoreError::Address("the address is longer than 2048 bytes".into()));
        }
        Ok(self)
    }

    /// Who this process is to the store; otherwise the environment's `QUINTET_STORE_USER` and
    /// `QUINTET_STORE_PASSWORD`. Never recorded.
    pub fn store_credentials(mut self, credentials: Credentials) -> Self {
        self.recipe.credentials = Some(credentials);
        self
    }

    /// Where the store does not keep up, entries are dropped, and counted, instead of waited for.
    /// What the store has of the bucket of a dropped entry is not found any more.
    pub fn drop_when_behind(mut self) -> Self {
        self.stored.0 |= Stored::DROPS;
        self
    }

    /// What a lookup finds in the store is kept in memory, as far as there is room. Of all who miss
    /// a key at the same time one asks the store then, and the others wait for it.
    pub fn keep_found(mut self) -> Self {
        self.stored.0 |= Stored::KEEPS;
        self
    }

    /// That a key is neither in memory nor in the store is kept in memory, as far as there is room.
    /// What other machines write to the store under such a key is not seen until that leaves.
    pub fn keep_absent(mut self) -> Self {
        self.stored.0 |= Stored::ABSENCES;
        self
    }

    /// What the store has from earlier caches, and from other machines that use it in the same way,
    /// is found, in the unnamed namespace. Otherwise a new cache begins empty. Clearing the cache
    /// is then known to this one only.
    pub fn adopt_store(mut self) -> Self {
        self.stored.0 |= Stored::ADOPTS;
        self
    }

    /// The store that another user's segment names is opened as well, with this process's rights;
    /// see [`CacheBuilder::any_owner`].
    pub fn any_store(mut self) -> Self {
        self.recipe.trusted = true;
        self
    }

    /// What is recorded of the store: nothing without one.
    fn stored(&self) -> Stored {
        if self.stored.has(Stored::HAS) { self.stored } else { Stored::NONE }
    }

    fn capacity_bytes(&self) -> usize {
        self.capacity.unwrap_or(CAPACITY)
    }

    fn block_bytes(&self) -> usize {
        let longest = self.max_value.unwrap_or(SHORT).clamp(SHORT, 4096 * MANY);
        self.block.or(self.usual).unwrap_or((longest / MANY).next_power_of_two())
    }

    /// Sizes without blocks, in so many bytes.
    fn empty(&self, capacity: usize) -> Sizes {
        let each = SEAT_BYTES + SLOT_BYTES + PROCESS_WORDS * 8;
        let fair = (capacity / SHARE / each).clamp(FEWEST, MOST) as u32;
        Sizes {
            format: FORMAT,
            buckets: 1,
            blocks: 1,
            seats: self.seats.unwrap_or(fair),
            block_words: (self.block_bytes() / 8) as u32,
            max_value: 0,
            pace: 1,
            evicts: !self.no_evict,
            leases: self.leases,
            capacity: capacity as u64,
            processes: self.processes.unwrap_or(fair),
            spaces: self.spaces(capacity),
            sums: self.sums,
            tiers: self.tiers.unwrap_or(1).clamp(1, MAX_TIERS as u32),
            promotes: self.promotes,
            policy: self.policy.unwrap_or_default(),
            quotas: self.quotas,
            store: self.stored(),
        }
    }

    /// Namespaces, the unnamed one included.
    fn spaces(&self, capacity: usize) -> u32 {
        let fair = (capacity / SPACES_SHARE / (SPACE_WORDS * 8)).max(64).min(MAX_SPACES as usize);
        self.spaces.map_or(fair as u32, |most| most.saturating_add(1)).min(MAX_SPACES + 1)
    }

    pub(super) fn sizes(&self) -> Result<Sizes, OpenError> {
        let refuse = |why| Err(MapError::Geometry(why).into());
        let (capacity, block) = (self.capacity_bytes(), self.block_bytes());
        if !block.is_power_of_two() || !(128..=4096).contains(&block) {
            return refuse("block: a power of two from 128 to 4096 bytes");
        }
        let empty = self.empty(capacity);
        if !(1..=1 << 13).contains(&empty.seats) {
            return refuse("handles: 1 to 8192");
        }
        if !(1..=MAX_PROCESSES as u32).contains(&empty.processes) {
            return refuse("processes: 1 to 8192");
        }
        if !(1..=MAX_TIERS as u32).contains(&self.tiers.unwrap_or(1)) {
            return refuse("tiers: 1 to 4");
        }
        if empty.store.exists() && self.no_evict {
            return refuse("store: of no use to a cache that evicts nothing");
        }
        let of = |blocks: u32| with_buckets(Sizes { blocks, ..empty });
        // Room for a page more than the most blocks take, which rounding needs.
        if capacity > of(MOST_BLOCKS).bytes() + (1 << 20) {
            return refuse("capacity: more than 2^30 blocks; take larger blocks or several caches");
        }
        let (mut few, mut many) = (0, MOST_BLOCKS + 1);
        while few + 1 < many {
            let middle = few.midpoint(many);
            if of(middle).bytes() <= capacity { few = middle } else { many = middle }
        }
        if few < 64 {
            return refuse("capacity: too small; take at least 256 KiB, or fewer handles");
        }
        let max_value = self.max_value.unwrap_or((1 << 20).min(capacity / 64));
        let pace = if self.exact { 0 } else { (few / 128).max(1) };
        let max_value = u32::try_from(max_value).unwrap_or(u32::MAX);
        let sizes = Sizes { max_value, pace, ..of(few) };
        if sizes.most_blocks() > few as usize / 8 {
            return refuse("longest value: at most an eighth of the capacity");
        }
        Sizes::from_fields(FORMAT, sizes.fields())
    }

    /// Makes a new cache.
    pub fn create(&self, place: &Place) -> Result<TierCache, OpenError> {
        let access = self.access.unwrap_or_default();
        let create = |shape: &Shape<'_>| Segment::create(place, shape, access);
        TierCache::make(self.sizes()?, &self.recipe, create)
    }

    /// Makes a cache without a name whose memory cannot be truncated, to hand to children.
    pub fn create_sealed(&self) -> Result<TierCache, OpenError> {
        TierCache::make(self.sizes()?, &self.recipe, Segment::create_sealed)
    }

    /// Attaches to a cache that is there, of whatever sizes.
    pub fn attach(&self, place: &Place) -> Result<TierCache, OpenError> {
        TierCache::open(place, true, self.any_owner, &self.recipe)
    }

    /// Attaches to a cache that is there to read only, of whatever sizes: the memory is mapped
    /// without the right to write.
    pub fn attach_read_only(&self, place: &Place) -> Result<TierCache, OpenError> {
        TierCache::open(place, false, self.any_owner, &self.recipe)
    }

    /// Attaches to the cache that is there, or makes it. Waits for as long as somebody alive is
    /// making it. One that is there must have the sizes and rights that were asked for here, unless
    /// any will do ([`CacheBuilder::any_size`]).
    pub fn create_or_attach(&self, place: &Place) -> Result<TierCache, OpenError> {
        use SegmentError::{Abandoned, Exists, NotFound, NotReady};
        // Somebody may make and remove it all the time: then there is an end to it. Waiting for a
        // creator is none of these turns.
        let mut turns = 0;
        loop {
            let error = match self.attach(place) {
                Err(OpenError::Segment(NotFound(_) | Abandoned(_))) => match self.create(place) {
                    Err(OpenError::Segment(error @ (Exists(_) | NotReady(_)))) => error,
                    done => return done,
                },
                Err(OpenError::Segment(error @ NotReady(_))) => error,
                Ok(cache) => return self.verify(cache),
                Err(error) => return Err(error),
            };
            turns += u32::from(!matches!(error, NotReady(_)));
            if turns > 100 {
                return Err(error.into());
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// A cache that is there is what was asked for.
    fn verify(&self, cache: TierCache) -> Result<TierCache, OpenError> {
        if self.any_size {
            return Ok(cache);
        }
        if let (true, Some(state)) = (self.stored.has(Stored::HAS), cache.store_state()) {
            if state.address != self.recipe.address {
                return Err(StoreError::Refused(format!(
                    "the cache that is there has the store {}; ask for that one",
                    state.address
                ))
                .into());
            }
        }
        let sizes = cache.sizes;
        let flag = |asked: bool| asked.then_some(1);
        let access = self.access.map(|access| access.mode as u64);
        let asked = [
            ("capacity", self.capacity.map(|bytes| bytes as u64), sizes.capacity),
            ("longest value", self.max_value.map(|max| max as u64), sizes.max_value as u64),
            (
                "bytes of a block",
                self.block.map(|bytes| bytes as u64),
                sizes.block_words as u64 * 8,
            ),
            ("handles", self.seats.map(u64::from), sizes.seats as u64),
            ("processes", self.processes.map(u64::from), sizes.processes as u64),
            ("no eviction", flag(self.no_evict), !sizes.evicts as u64),
            ("exact recency", flag(self.exact), (sizes.pace == 0) as u64),
            ("leases", flag(self.leases), sizes.leases as u64),
            ("namespaces", self.spaces.map(u64::from), sizes.spaces as u64 - 1),
            ("checksums", flag(self.sums), sizes.sums as u64),
            ("tiers", self.tiers.map(u64::from), sizes.tiers as u64),
            ("promotion", flag(self.promotes), sizes.promotes as u64),
            ("policy", self.policy.map(Policy::number), sizes.policy.number()),
            ("quotas", flag(self.quotas), sizes.quotas as u64),
            ("store", flag(self.stored.has(Stored::HAS)), sizes.store.exists() as u64),
            ("mode", access, cache.mode() as u64),
        ];
        let differs =
            |(_, asked, is): &(_, Option<u64>, u64)| asked.is_some_and(|asked| asked != *is);
        match asked.into_iter().find(differs) {
            None => Ok(cache),
            Some((field, asked, found)) => {
                let expected = asked.unwrap_or(found);
                Err(SegmentError::Mismatch { field, expected, found }.into())
            }
        }
    }
}

/// Two cells per block, so that practically no entry has to leave for its bucket's sake; each tier
/// has its share of them.
fn with_buckets(sizes: Sizes) -> Sizes {
    Sizes { buckets: sizes.blocks.div_ceil(sizes.tiers), ..sizes }
}
