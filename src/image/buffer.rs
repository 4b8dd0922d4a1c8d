//! Memory for samples. Large images get huge pages if the system grants them: touching 128 MiB for
//! the first time otherwise takes 33 000 page faults, longer than the operation itself. A thread
//! that processes one image after another keeps the memory of the last ones in its pool; a program
//! that uses the library can keep some of it for all threads (`keep_spare`).
//!
//! Buffers can share memory, and read memory that another owner lends. Shared memory is copied
//! before one of its buffers changes it.

use anyhow::Result;
use bytemuck::Pod;
use memmap2::MmapMut;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// From this many bytes on, memory is mapped separately.
const LARGE: usize = 4 << 20;

/// Blocks smaller than this are not pooled.
const POOLED: usize = 64 << 10;

/// The byte with which debug builds fill memory that is to be overwritten.
pub const POISON: u8 = 0xa5;

/// A fixed number of samples; used as a slice.
pub struct Buffer<T> {
    len: usize,
    memory: Memory<T>,
    /// Memory that was offered for the result of an operation on these samples; clones do not have it.
    offer: Option<Block>,
}

enum Memory<T> {
    Heap(Vec<T>),
    Mapped(MmapMut),
    /// A block of this thread's pool, and the pool's generation.
    Pooled(Block, usize),
    /// Memory that several buffers read.
    Shared(Arc<Shared<T>>),
    /// The state of a buffer that has returned its memory.
    Gone,
}

/// Memory that several buffers read.
enum Shared<T> {
    /// It was the memory of one buffer.
    Own(Buffer<T>),
    /// It belongs to another owner, and is never changed.
    Lent(LentMemory),
}

/// Memory of another owner.
pub type LentMemory = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// A block of a pool: plain bytes, aligned for samples of 16 bits.
pub type Block = Box<dyn Bytes>;

/// Bytes that can be read and written.
pub trait Bytes: DerefMut<Target = [u8]> + Send + Sync {}

impl<B: DerefMut<Target = [u8]> + Send + Sync> Bytes for B {}

thread_local! {
    static POOL: RefCell<Option<BufferPool>> = const { RefCell::new(None) };
}

/// The generation of a block that no pool takes back.
const NO_POOL: usize = usize::MAX;

/// The memory that any thread may use again, and the most bytes of it.
static SPARE: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());
static MOST_SPARE: AtomicUsize = AtomicUsize::new(0);

/// Keeps up to so many bytes of the memory of large images that are dropped, for later ones on any thread; 0 returns all of it to
/// the system.
pub fn keep_spare(most: usize) {
    MOST_SPARE.store(most, Ordering::Relaxed);
    if let Ok(mut spare) = SPARE.try_lock() {
        shrink(&mut spare, most);
    }
}

/// Frees the oldest memory beyond `most` bytes.
fn shrink(spare: &mut Vec<MmapMut>, most: usize) {
    let mut kept: usize = spare.iter().map(|map| map.len()).sum();
    let excess = spare.iter().take_while(|map| {
        let is_excess = kept > most;
        kept -= map.len().min(kept);
        is_excess
    });
    let excess = excess.count();
    spare.drain(..excess);
}

/// Spare memory of exactly so many bytes. Nobody waits for the lock: after a fork it may be held for ever.
fn take_spare(bytes: usize) -> Option<MmapMut> {
    if MOST_SPARE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut spare = SPARE.try_lock().ok()?;
    let last = spare.iter().rposition(|map| map.len() == bytes)?;
    Some(spare.remove(last))
}

/// Keeps memory, or returns it to the system.
fn give_spare(map: MmapMut) {
    let most = MOST_SPARE.load(Ordering::Relaxed);
    if map.len() <= most
        && let Ok(mut spare) = SPARE.try_lock()
    {
        spare.push(map);
        shrink(&mut spare, most);
    }
}

/// The memory that a thread keeps for later images.
struct BufferPool {
    blocks: Vec<Block>,
    /// The most bytes that may be pooled.
    most: usize,
    make: Box<dyn Fn(usize) -> Option<Block>>,
    /// Counts how often the pool was cleared; a block of an earlier generation is not pooled again.
    generation: usize,
}

/// Runs `work` with a pool for at most `most` bytes on this thread, in which `make` makes new
/// blocks (`None`: blocks are made as without a pool).
pub fn with_pool<R>(
    most: usize,
    make: impl Fn(usize) -> Option<Block> + 'static,
    work: impl FnOnce() -> R,
) -> R {
    with_kept_blocks(&mut Vec::new(), most, make, work)
}

/// As `with_pool`, with a pool that has `blocks`; those that it has afterwards are put back there.
pub fn with_kept_blocks<R>(
    blocks: &mut Vec<Block>,
    most: usize,
    make: impl Fn(usize) -> Option<Block> + 'static,
    work: impl FnOnce() -> R,
) -> R {
    let pool = BufferPool {
        blocks: std::mem::take(blocks),
        most,
        make: Box::new(make),
        generation: 0,
    };
    // A thread that waits for others may have begun this work in the middle of other work, which has a pool of its own.
    let outer = POOL.replace(Some(pool));
    let result = work();
    if let Some(pool) = POOL.replace(outer) {
        *blocks = pool.blocks;
    }
    result
}

/// Clears this thread's pool, if it has one: `make` gives better memory from now on.
pub fn clear_pool() {
    POOL.with_borrow_mut(|pool| {
        if let Some(pool) = pool {
            pool.blocks.clear();
            pool.generation += 1;
        }
    });
}

/// Memory mapped from the system, with huge pages if possible; `None` if there is none.
pub fn mapped(bytes: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(bytes).ok()?;
    // Only a hint: without huge pages the memory is as good, but slower to touch.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(map)
}

impl BufferPool {
    /// A block for `bytes`: the smallest pooled one that is large enough, or a new one.
    fn acquire(&mut self, bytes: usize) -> Option<(Block, usize)> {
        let serves = |block: &Block| block.len() >= bytes && block.len() / 4 <= bytes;
        let best = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| serves(block));
        let block = match best.min_by_key(|(_, block)| block.len()) {
            Some((index, _)) => Some(self.blocks.remove(index)),
            // Eight sizes between two powers of two, so that the block serves the next image too,
            // whose data are a little longer.
            None => (self.make)(bytes.next_multiple_of((bytes.next_power_of_two() / 16).max(1))),
        };
        block.map(|block| (block, self.generation))
    }

    fn release(&mut self, block: Block, generation: usize) {
        if generation != self.generation {
            return;
        }
        self.blocks.push(block);
        let mut pooled: usize = self.blocks.iter().map(|block| block.len()).sum();
        // The oldest blocks are freed first.
        while pooled > self.most {
            pooled -= self.blocks.remove(0).len();
        }
    }
}

impl<T> Buffer<T> {
    fn new(len: usize, memory: Memory<T>) -> Buffer<T> {
        let offer = None;
        Buffer { len, memory, offer }
    }
}

impl<T: Pod> Buffer<T> {
    /// `len` zeros, untouched until used; an error if the system will not give the memory.
    pub fn zeroed(len: usize) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = if bytes < LARGE {
            Memory::Heap(vec![T::zeroed(); len])
        } else {
            let map = mapped(bytes).ok_or_else(|| {
                let why = format!("not enough memory for {bytes} bytes of samples");
                io::Error::new(io::ErrorKind::OutOfMemory, why)
            })?;
            Memory::Mapped(map)
        };
        Ok(Buffer::new(len, memory))
    }

    /// `len` samples with undefined values, for callers that write every sample: the memory may be
    /// an earlier image's. An error if the system has no memory left.
    ///
    /// In debug builds, and so in the tests, every byte is `POISON`, whatever the size and the
    /// source of the memory, so that a sample that was not written is noticed.
    pub fn any(len: usize) -> Result<Buffer<T>> {
        Buffer::any_of(len, None)
    }

    /// The same, in the offered memory if that has exactly as many bytes, and serves for samples of this type.
    pub fn any_of(len: usize, offer: Option<Block>) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let serves = |block: &Block| {
            block.len() == bytes && block.as_ptr().align_offset(align_of::<T>()) == 0
        };
        let mut buffer = match offer.filter(serves) {
            Some(block) => Buffer::new(len, Memory::Pooled(block, NO_POOL)),
            None => Buffer::recycled(len)?,
        };
        if cfg!(debug_assertions) {
            bytemuck::cast_slice_mut::<T, u8>(&mut buffer).fill(POISON);
        }
        Ok(buffer)
    }

    /// Memory of an earlier image, or new memory.
    fn recycled(len: usize) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let shelved = (bytes >= POOLED)
            .then(|| POOL.with_borrow_mut(|pool| pool.as_mut()?.acquire(bytes)))
            .flatten();
        match shelved {
            Some((block, generation)) => Ok(Buffer::new(len, Memory::Pooled(block, generation))),
            None => match take_spare(bytes) {
                Some(map) => Ok(Buffer::new(len, Memory::Mapped(map))),
                None => Buffer::zeroed(len),
            },
        }
    }

    /// The samples in memory of another owner, which must be aligned; `None` if it is not. They are copied before they are changed.
    pub fn lent(memory: LentMemory) -> Option<Buffer<T>> {
        let len = bytemuck::try_cast_slice::<u8, T>(&memory).ok()?.len();
        let memory = Memory::Shared(Arc::new(Shared::Lent(memory)));
        Some(Buffer::new(len, memory))
    }

    /// The same samples, whose clones share their memory until one of them is changed.
    pub fn shared(self) -> Buffer<T> {
        if let Memory::Shared(_) = self.memory {
            return self;
        }
        Buffer::new(self.len, Memory::Shared(Arc::new(Shared::Own(self))))
    }

    /// Whether the samples are in memory that another owner lends.
    pub fn is_lent(&self) -> bool {
        match &self.memory {
            Memory::Shared(shared) => match &**shared {
                Shared::Own(buffer) => buffer.is_lent(),
                Shared::Lent(_) => true,
            },
            _ => false,
        }
    }

    /// Memory for changed samples, with undefined values, if the samples cannot be changed where they are without a copy.
    ///
    /// # Errors
    /// No memory.
    pub fn memory_for_change(&mut self) -> Result<Option<Buffer<T>>> {
        if self.own().is_some() {
            return Ok(None);
        }
        Buffer::any_of(self.len, self.offer.take()).map(Some)
    }

    /// Offers memory for the result of an operation on these samples.
    pub fn offer(&mut self, memory: Block) {
        self.offer = Some(memory);
    }

    /// The memory that was offered.
    pub fn take_offer(&mut self) -> Option<Block> {
        self.offer.take()
    }

    /// The memory of the samples, unless another buffer or owner has it too.
    fn own(&mut self) -> Option<&mut [T]> {
        let bytes = self.len * size_of::<T>();
        match &mut self.memory {
            Memory::Heap(vec) => Some(vec),
            Memory::Mapped(map) => Some(bytemuck::cast_slice_mut(&mut map[..bytes])),
            Memory::Pooled(block, _) => Some(bytemuck::cast_slice_mut(&mut block[..bytes])),
            Memory::Shared(shared) => match Arc::get_mut(shared)? {
                Shared::Own(buffer) => buffer.own(),
                Shared::Lent(_) => None,
            },
            Memory::Gone => Some(&mut []),
        }
    }

    fn copy(&self) -> Buffer<T> {
        match Buffer::any(self.len) {
            Ok(mut copy) => {
                copy.copy_from_slice(self);
                copy
            }
            // The allocator's own way to report that there is no memory.
            Err(_) => self.to_vec().into(),
        }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.memory, Memory::Gone) {
            Memory::Pooled(block, generation) => {
                // A thread without a pool, or one that is ending, returns the memory to the system.
                let _ = POOL.try_with(|pool| {
                    if let Some(pool) = pool.borrow_mut().as_mut() {
                        pool.release(block, generation);
                    }
                });
            }
            Memory::Mapped(map) => give_spare(map),
            Memory::Heap(_) | Memory::Shared(_) | Memory::Gone => {}
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(vec: Vec<T>) -> Buffer<T> {
        Buffer::new(vec.len(), Memory::Heap(vec))
    }
}

impl<T> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(samples: I) -> Buffer<T> {
        Vec::from_iter(samples).into()
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.len * size_of::<T>();
        match &self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice(&map[..bytes]),
            Memory::Pooled(block, _) => bytemuck::cast_slice(&block[..bytes]),
            Memory::Shared(shared) => match &**shared {
                Shared::Own(buffer) => buffer,
                Shared::Lent(memory) => bytemuck::cast_slice(&memory[..bytes]),
            },
            Memory::Gone => &[],
        }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.own().is_none() {
            *self = self.copy();
        }
        self.own().unwrap_or_default()
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A copy, unless the memory is shared.
impl<T: Pod> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        match &self.memory {
            Memory::Shared(shared) => Buffer::new(self.len, Memory::Shared(shared.clone())),
            _ => self.copy(),
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

impl<T: Pod + Eq> Eq for Buffer<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(bytes: Vec<u8>) -> LentMemory {
        Box::new(bytes)
    }

    #[test]
    fn clones_share_memory_until_one_is_changed() {
        let first = Buffer::from(vec![1u16, 2, 3]).shared();
        let mut second = first.clone();
        assert_eq!(first.as_ptr(), second.as_ptr());
        second[1] = 9;
        assert_eq!((&first[..], &second[..]), (&[1, 2, 3][..], &[1, 9, 3][..]));
        // The last one changes its memory where it is.
        drop(second);
        let (mut last, at) = (first.clone(), first.as_ptr());
        drop(first);
        last[0] = 7;
        assert_eq!((last.as_ptr(), &last[..]), (at, &[7, 2, 3][..]));
    }

    #[test]
    fn lent_memory_is_never_changed() {
        let memory = Arc::new(vec![1u8, 2, 3]);
        struct Lender(Arc<Vec<u8>>);
        impl Deref for Lender {
            type Target = [u8];
            fn deref(&self) -> &[u8] {
                &self.0
            }
        }
        let mut buffer = Buffer::<u8>::lent(Box::new(Lender(memory.clone()))).expect("aligned");
        assert_eq!(buffer.as_ptr(), memory.as_ptr());
        assert!(buffer.is_lent() && buffer.clone().shared().is_lent());
        assert!(buffer.memory_for_change().expect("memory").is_some());
        buffer[0] = 9;
        assert!(!buffer.is_lent());
        assert_eq!((&memory[..], &buffer[..]), (&[1, 2, 3][..], &[9, 2, 3][..]));
        assert_eq!(Arc::strong_count(&memory), 1, "the lender is released");
    }

    #[test]
    fn memory_of_another_size_is_not_lent() {
        assert!(Buffer::<u32>::lent(lent(vec![0; 7])).is_none());
        assert_eq!(
            Buffer::<u8>::lent(lent(vec![5; 7])).expect("bytes").len(),
            7
        );
    }

    #[test]
    fn offered_memory_is_used_for_a_result_of_its_size() -> Result<()> {
        for (offered, taken) in [(8, true), (7, false), (16, false)] {
            let block = vec![0u8; offered].into_boxed_slice();
            let at = block.as_ptr();
            let mut samples = Buffer::from(vec![1u16; 4]).shared();
            samples.offer(Box::new(block));
            let mut copy = samples.clone();
            let other = copy.memory_for_change()?.expect("shared");
            assert_ne!(other.as_ptr().cast(), at, "clones are not offered it");
            let result = samples.memory_for_change()?.expect("shared");
            assert_eq!((result.len(), result.as_ptr().cast() == at), (4, taken));
        }
        Ok(())
    }

    #[test]
    fn spare_memory_is_bounded() {
        let map = |bytes: usize| MmapMut::map_anon(bytes).expect("memory");
        let mut spare = vec![map(1000), map(2000), map(3000)];
        shrink(&mut spare, 6000);
        assert_eq!(spare.len(), 3);
        shrink(&mut spare, 5000);
        assert_eq!(
            spare.iter().map(|map| map.len()).collect::<Vec<_>>(),
            [2000, 3000]
        );
        shrink(&mut spare, 2999);
        assert!(spare.is_empty());
    }
}
