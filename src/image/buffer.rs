//! Memory for samples. Large images get huge pages if the system grants them: touching 128 MiB for
//! the first time otherwise takes 33 000 page faults, longer than the operation itself. A thread
//! that processes one image after another keeps the memory of the last ones in its pool.

use anyhow::Result;
use bytemuck::Pod;
use memmap2::MmapMut;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

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
}

enum Memory<T> {
    Heap(Vec<T>),
    Mapped(MmapMut),
    /// A block of this thread's pool, and the pool's generation.
    Pooled(Block, usize),
    /// The state of a buffer that has returned its memory.
    Gone,
}

/// A block of a pool: plain bytes, aligned for samples of 16 bits.
pub type Block = Box<dyn Bytes>;

/// Bytes that can be read and written.
pub trait Bytes: DerefMut<Target = [u8]> + Send + Sync {}

impl<B: DerefMut<Target = [u8]> + Send + Sync> Bytes for B {}

thread_local! {
    static POOL: RefCell<Option<BufferPool>> = const { RefCell::new(None) };
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
    let pool = BufferPool {
        blocks: Vec::new(),
        most,
        make: Box::new(make),
        generation: 0,
    };
    POOL.set(Some(pool));
    let result = work();
    POOL.set(None);
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
        Ok(Buffer { len, memory })
    }

    /// `len` samples with undefined values, for callers that write every sample: the memory may be
    /// an earlier image's. An error if the system has no memory left.
    ///
    /// In debug builds, and so in the tests, every byte is `POISON`, whatever the size and the
    /// source of the memory, so that a sample that was not written is noticed.
    pub fn any(len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::recycled(len)?;
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
            Some((block, generation)) => Ok(Buffer {
                len,
                memory: Memory::Pooled(block, generation),
            }),
            None => Buffer::zeroed(len),
        }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Memory::Pooled(block, generation) = std::mem::replace(&mut self.memory, Memory::Gone)
        {
            // A thread without a pool, or one that is ending, returns the memory to the system.
            let _ = POOL.try_with(|pool| {
                if let Some(pool) = pool.borrow_mut().as_mut() {
                    pool.release(block, generation);
                }
            });
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(vec: Vec<T>) -> Buffer<T> {
        Buffer {
            len: vec.len(),
            memory: Memory::Heap(vec),
        }
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
            Memory::Gone => &[],
        }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.len * size_of::<T>();
        match &mut self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice_mut(&mut map[..bytes]),
            Memory::Pooled(block, _) => bytemuck::cast_slice_mut(&mut block[..bytes]),
            Memory::Gone => &mut [],
        }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pod> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        match Buffer::zeroed(self.len) {
            Ok(mut copy) => {
                copy.copy_from_slice(self);
                copy
            }
            // The allocator's own way to report that there is no memory.
            Err(_) => self.to_vec().into(),
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

impl<T: Pod + Eq> Eq for Buffer<T> {}
