//! The two words that readers look at.

/// How many copies a table has room for: two that take turns, and one more for the day when a
/// reader does not leave.
pub(super) const PLACES: usize = 3;

/// How many doors there are: each place has a plain one and a fenced one.
pub(super) const DOORS: usize = 2 * PLACES;

/// One of the places that hold a copy. **P1.** Always below [`PLACES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

impl Place {
    pub(super) const ALL: [Self; PLACES] = [Self(0), Self(1), Self(2)];

    pub(super) const fn plain(self) -> Door {
        Door(self.0)
    }

    pub(super) const fn fenced(self) -> Door {
        Door(self.0 + PLACES)
    }

    pub(super) const fn doors(self) -> [Door; 2] {
        [self.plain(), self.fenced()]
    }

    /// The element of `array` that belongs to this place, to be changed.
    pub(super) fn of_mut<X>(self, array: &mut [X; PLACES]) -> &mut X {
        &mut array[self.0]
    }
}

/// Some of the places: which of them it is does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places(u32);

impl Places {
    pub(super) const fn one(place: Place) -> Self {
        Self(1 << place.0)
    }

    pub(super) const fn or(self, place: Place) -> Self {
        Self(self.0 | Self::one(place).0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Place> + Clone {
        Place::ALL.into_iter().filter(move |place| self.0 & Self::one(*place).0 != 0)
    }
}

/// One of the ways to a place: what the readable word says, and what a reader announces. **P2.**
/// Always below [`DOORS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Door(usize);

impl Door {
    pub(super) const ALL: [Self; DOORS] = [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5)];

    /// # Safety
    /// The word was made by [`word`](Self::word) (P2).
    #[inline(always)]
    pub(super) const unsafe fn from_word(word: usize) -> Self {
        debug_assert!(word < DOORS);
        Self(word)
    }

    #[inline(always)]
    pub(super) const fn word(self) -> usize {
        self.0
    }

    pub(super) const fn is_fenced(self) -> bool {
        self.0 >= PLACES
    }

    pub(super) const fn place(self) -> Place {
        Place(self.0 % PLACES)
    }

    /// The element of `array` that belongs to this door.
    #[inline(always)]
    pub(super) fn of<X>(self, array: &[X; DOORS]) -> &X {
        // SAFETY: P2.
        unsafe { array.get_unchecked(self.0) }
    }
}

/// What the writer is doing about the copy it wants to write.
///
/// | Word | Name | The writer | A reader that leaves the copy |
/// |---|---|---|---|
/// | 0 | not writable | is not waiting | goes on |
/// | 1 | writable | was told to look again | goes on |
/// | 2 | claimed | waits for 1 | goes on: another reader is telling the writer |
/// | 8 + s | waiting for a place of the set s | sleeps, or is about to | if it is one of s: claims, takes the parker, stores 1, wakes |
/// | 16 + s | hoping for one | the same, but can do without it | the same |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(u32);

impl State {
    pub(super) const NOT_WRITABLE: Self = Self(0);
    pub(super) const WRITABLE: Self = Self(1);
    pub(super) const CLAIMED: Self = Self(2);
    const WAITING: u32 = 1 << PLACES;

    /// Until one of the places is empty.
    pub(super) const fn waiting(places: Places) -> Self {
        Self(Self::WAITING + places.0)
    }

    /// The same, by who can do without it.
    pub(super) const fn hoping(places: Places) -> Self {
        Self(2 * Self::WAITING + places.0)
    }

    pub(super) const fn is_hoping(self) -> bool {
        self.0 >= 2 * Self::WAITING
    }

    /// Whether the writer waits or hopes for this place, or this one or another.
    pub(super) const fn is_waiting_for(self, place: Place) -> bool {
        self.is_waiting() && self.0 & Places::one(place).0 != 0
    }

    pub(super) const fn is_waiting(self) -> bool {
        self.0 >= Self::WAITING
    }

    #[inline(always)]
    pub(super) const fn from_word(word: u32) -> Self {
        Self(word)
    }

    #[inline(always)]
    pub(super) const fn word(self) -> u32 {
        self.0
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::NOT_WRITABLE => out.write_str("NOT_WRITABLE"),
            Self::WRITABLE => out.write_str("WRITABLE"),
            Self::CLAIMED => out.write_str("CLAIMED"),
            Self(word) if self.is_hoping() => write!(out, "HOPING({:03b})", word & 7),
            Self(word) => write!(out, "WAITING({:03b})", word & 7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_two_doors_of_its_own() {
        let mut doors: Vec<usize> = Vec::new();
        for place in Place::ALL {
            let [plain, fenced] = place.doors();
            assert!(!plain.is_fenced() && fenced.is_fenced());
            assert_eq!((plain.place(), fenced.place()), (place, place));
            doors.extend([plain.word(), fenced.word()]);
        }
        doors.sort_unstable();
        assert_eq!(doors, Door::ALL.map(Door::word));
    }

    #[test]
    fn every_state_has_a_word_and_a_name_of_its_own() {
        let mut all = vec![State::NOT_WRITABLE, State::WRITABLE, State::CLAIMED];
        all.extend((1..8).map(|set| State::waiting(Places(set))));
        all.extend((1..8).map(|set| State::hoping(Places(set))));
        for (at, state) in all.iter().enumerate() {
            assert_eq!(State::from_word(state.word()), *state);
            assert_eq!((state.is_waiting(), state.is_hoping()), (at >= 3, at >= 10));
            for other in &all[..at] {
                assert_ne!(state, other);
                assert_ne!(format!("{state:?}"), format!("{other:?}"));
            }
        }
        let pair = Places::one(Place::ALL[0]).or(Place::ALL[2]);
        assert!(pair.iter().eq([Place::ALL[0], Place::ALL[2]]));
        assert_eq!(format!("{:?}", State::waiting(pair)), "WAITING(101)");
        let awaited = Place::ALL.map(|place| State::waiting(pair).is_waiting_for(place));
        assert_eq!(awaited, [true, false, true]);
        assert!(!State::CLAIMED.is_waiting_for(Place::ALL[1]));
    }
}
