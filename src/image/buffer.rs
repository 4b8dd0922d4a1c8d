//! Memory for samples. Large images get huge pages where the system grants them: touching 128 MiB
//! for the first time takes 33 000 page faults otherwise, longer than the operation on it. A thread
//! that works on one image after another keeps the memory of the last ones in its pool.

use anyhow::Result;
use bytemuck::Pod;
use memmap2::{Advice, MmapMut};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// From this many bytes on memory is mapped by itself.
const LARGE: usize = 4 << 20;

/// Blocks smaller than this are not pooled.
const POOLED: usize = 64 << 10;

/// What debug builds fill memory with that is to be written.
pub const POISON: u8 = 0xa5;

/// A fixed number of samples; used as a slice.
pub struct Buffer<T> {
    len: usize,
    memory: Memory<T>,
}

enum Memory<T> {
    Heap(Vec<T>),
    Mapped(MmapMut),
    /// From the pool of this thread, in this generation of it.
    Pooled(Block, usize),
    /// What is left of a buffer that gave its memory back.
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

/// The memory that a thread keeps for its next images.
struct BufferPool {
    blocks: Vec<Block>,
    /// Bytes that may be pooled.
    most: usize,
    make: Box<dyn Fn(usize) -> Option<Block>>,
    /// Counts how often the pool was cleared; a block of an earlier generation is not taken back.
    generation: usize,
}

/// Gives this thread a pool for at most `most` bytes, new blocks made by `make` (`None`: as without
/// a pool), and takes it away after `work`.
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

/// Clears this thread's pool, if it has one: `make` makes better blocks from now on.
pub fn clear_pool() {
    POOL.with_borrow_mut(|pool| {
        if let Some(pool) = pool {
            pool.blocks.clear();
            pool.generation += 1;
        }
    });
}

/// Memory of the system's own, with huge pages if it will; `None` if there is none.
pub fn mapped(bytes: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(bytes).ok()?;
    // A wish: without huge pages the memory is as good, only slower to touch.
    let _ = map.advise(Advice::HugePage);
    Some(map)
}

impl BufferPool {
    /// A block for `bytes`: the smallest that serves, or a new one.
    fn acquire(&mut self, bytes: usize) -> Option<(Block, usize)> {
        let serves = |block: &Block| block.len() >= bytes && block.len() / 4 <= bytes;
        let best = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| serves(block));
        let block = match best.min_by_key(|(_, block)| block.len()) {
            Some((index, _)) => Some(self.blocks.remove(index)),
            None => (self.make)(bytes),
        };
        block.map(|block| (block, self.generation))
    }

    fn release(&mut self, block: Block, generation: usize) {
        if generation != self.generation {
            return;
        }
        self.blocks.push(block);
        let mut pooled: usize = self.blocks.iter().map(|block| block.len()).sum();
        // The oldest go first.
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
            let map = mapped(bytes)
                .ok_or_else(|| anyhow::anyhow!("not enough memory for {bytes} bytes of samples"))?;
            Memory::Mapped(map)
        };
        Ok(Buffer { len, memory })
    }

    /// `len` samples of any value, for those who write every one: the memory may be an earlier
    /// image's. An error if the system will not give it.
    ///
    /// In debug builds, and so in the tests, every byte is `POISON`, whatever the size and wherever
    /// the memory is from: a sample that is left unwritten shows.
    pub fn any(len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::recycled(len)?;
        if cfg!(debug_assertions) {
            bytemuck::cast_slice_mut::<T, u8>(&mut buffer).fill(POISON);
        }
        Ok(buffer)
    }

    /// Memory that another image had, or new memory.
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
            // A thread without a pool, or one that ends, gives the memory back to the system.
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
            // The allocator's own way to say that there is no memory.
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
