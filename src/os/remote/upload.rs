//! A Zarr store that is written to a bucket of S3. No object can be renamed, so the file that describes the store, without which it
//! is none, is sent last.
//!
//! The first object that is sent is a mark, and it is the last one to be removed. So gpuimg recognises the objects of an unfinished run,
//! whatever ended it.

use super::failure::{Failure, Server};
use super::{bucket, location, patience, pool, runtime};
use crate::os::console;
use crate::os::reason::exists;
use crate::os::store::DESCRIPTIONS;
use crate::os::store_record::Record;
use crate::os::url::Url;
use anyhow::{Context, Result, bail};
use futures_util::future::ready;
use futures_util::stream::{BoxStream, iter};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};
use rayon::ThreadPool;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The object that a bucket has while a store is written.
const MARK: &str = ".gpuimg-unfinished";

/// What the mark tells those who find it.
const MARK_TEXT: &[u8] =
    b"gpuimg writes this Zarr store, or was stopped before the store was complete.\n";

/// The description, which makes a store of the objects.
const ROOT: &str = DESCRIPTIONS[0];

/// The most bytes that one request sends: the smallest part that S3 accepts in a multipart upload.
const MOST_SENT: usize = 5 << 20;

/// A request that sends data may take this many times longer, because the server answers when it has received all of them.
const SENDING: u32 = 2;

/// The addresses of the stores that are being written.
static UNFINISHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The addresses of the stores that remain unfinished if the process ends now.
pub fn unfinished_uploads() -> Vec<String> {
    mem::take(&mut *unfinished()).into_iter().collect()
}

fn unfinished() -> MutexGuard<'static, BTreeSet<String>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The locations of objects.
type Objects = BoxStream<'static, object_store::Result<Location>>;

/// A store that is not complete yet.
#[derive(Debug)]
pub struct Upload {
    store: Box<dyn ObjectStore>,
    server: Server,
    /// The address, for messages.
    address: String,
    /// The prefix of the names of its objects.
    prefix: String,
    overwrite: bool,
    /// The description, which is sent last.
    root: Mutex<Vec<u8>>,
    record: Record,
    pool: &'static ThreadPool,
}

/// What is already at the address of a store.
enum Found {
    Nothing,
    Store,
    /// What another run has begun to write.
    Unfinished,
    Other,
}

impl Upload {
    /// Prepares a store, without writing anything.
    ///
    /// # Errors
    /// Objects at this address, unless they are a store and `overwrite`, and a bucket that cannot be read.
    pub fn new(url: &Url, overwrite: bool) -> Result<Upload> {
        let patience = patience() * SENDING;
        let upload = Upload {
            store: bucket(url, patience)?,
            server: Server {
                is_bucket: true,
                patience,
            },
            address: format!("{}{}/{}", url.scheme, url.host, url.path),
            prefix: format!("{}/", url.path),
            overwrite,
            root: Mutex::default(),
            record: Record::none(),
            pool: pool()?,
        };
        upload.replaces()?;
        Ok(upload)
    }

    /// Whether the store would replace another one.
    ///
    /// # Errors
    /// Those of `new`.
    pub fn replaces(&self) -> Result<bool> {
        match self.look().context("cannot see what is there")? {
            Found::Nothing => Ok(false),
            Found::Store | Found::Unfinished if self.overwrite => Ok(true),
            Found::Store => bail!(exists()),
            Found::Unfinished => bail!(
                "another run writes a store there, or was stopped before it was complete (use --overwrite to replace it)"
            ),
            Found::Other => bail!(
                "there are objects, but none of {}, so it is not a Zarr store and is not replaced: delete them, or give another name",
                DESCRIPTIONS.join(", ")
            ),
        }
    }

    fn look(&self) -> Result<Found> {
        runtime()?.block_on(async {
            match self.objects()?.next().await {
                None => return Ok(Found::Nothing),
                Some(first) => first.map_err(|error| self.error(&error))?,
            };
            for name in DESCRIPTIONS {
                if self.has(name).await? {
                    return Ok(Found::Store);
                }
            }
            Ok(match self.has(MARK).await? {
                true => Found::Unfinished,
                false => Found::Other,
            })
        })
    }

    /// Begins the store: removes an old one that it replaces, whose description goes first.
    ///
    /// # Errors
    /// What is at this address by now, and a bucket that cannot be written.
    pub fn begin(&self) -> Result<()> {
        let replaces = self.replaces()?;
        runtime()?.block_on(async {
            self.send(MARK, MARK_TEXT).await.context(MARK)?;
            // Not before: an old store is as it was.
            unfinished().insert(self.address.clone());
            if replaces {
                let cleared = self.clear().await;
                cleared.context("cannot delete the old store")?;
            }
            Ok(())
        })
    }

    /// Sends a file of the store by its name. The description waits for `finish`.
    ///
    /// # Errors
    /// A server that does not take it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if name == ROOT {
            let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
            *root = bytes.into();
            return Ok(());
        }
        runtime()?.block_on(self.send(name, bytes))
    }

    /// Completes the store.
    ///
    /// # Errors
    /// A server that does not take the description, or does not remove the mark.
    pub fn finish(self) -> Result<()> {
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        let root = mem::take(&mut *root);
        runtime()?.block_on(async {
            self.send(ROOT, &root).await.context(ROOT)?;
            // From now on it is a store.
            unfinished().remove(&self.address);
            let removed = self.delete_named(&[MARK]).await;
            removed.with_context(|| format!("it is complete, but cannot delete {MARK}"))
        })
    }

    /// The pages that are written.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Runs work on enough threads to have several requests under way.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    fn location(&self, name: &str) -> Result<Location> {
        location(&self.prefix, name)
    }

    fn error(&self, error: &object_store::Error) -> anyhow::Error {
        self.server.failure(error).error()
    }

    /// The objects of the store.
    fn objects(&self) -> Result<Objects> {
        let objects = self.store.list(Some(&self.location("")?));
        Ok(objects.map_ok(|object| object.location).boxed())
    }

    async fn has(&self, name: &str) -> Result<bool> {
        match self.store.head(&self.location(name)?).await {
            Ok(_) => Ok(true),
            Err(error) => match self.server.failure(&error) {
                Failure::Absent => Ok(false),
                failure => Err(failure.error()),
            },
        }
    }

    async fn send(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let location = self.location(name)?;
        let sent = match bytes.len() {
            ..=MOST_SENT => {
                let put = self.store.put(&location, bytes.to_vec().into()).await;
                put.map(drop)
            }
            _ => self.send_parts(&location, bytes).await,
        };
        sent.map_err(|error| self.error(&error))
    }

    async fn send_parts(&self, location: &Location, bytes: &[u8]) -> object_store::Result<()> {
        let mut upload = self.store.put_multipart(location).await?;
        let parts = async {
            for part in bytes.chunks(MOST_SENT) {
                upload.put_part(part.to_vec().into()).await?;
            }
            upload.complete().await
        };
        let sent = parts.await;
        if sent.is_err() {
            // The server keeps parts until then.
            let _ = upload.abort().await;
        }
        sent.map(drop)
    }

    /// Deletes all objects but the mark.
    async fn clear(&self) -> Result<()> {
        self.delete_named(&DESCRIPTIONS).await?;
        let mark = self.location(MARK)?;
        let objects = self.objects()?;
        let others = objects.try_filter(move |object| ready(*object != mark));
        self.delete(others.boxed()).await
    }

    async fn delete_named(&self, names: &[&str]) -> Result<()> {
        let locations = names.iter().map(|name| self.location(name));
        let locations: Vec<Location> = locations.collect::<Result<_>>()?;
        self.delete(iter(locations).map(Ok).boxed()).await
    }

    /// Deletes objects, which may be absent.
    async fn delete(&self, objects: Objects) -> Result<()> {
        let mut deleted = self.store.delete_stream(objects);
        while let Some(result) = deleted.next().await {
            match result.map_err(|error| self.server.failure(&error)) {
                Ok(_) | Err(Failure::Absent) => {}
                Err(failure) => return Err(failure.error()),
            }
        }
        Ok(())
    }
}

impl Drop for Upload {
    /// Deletes what was written of a store that is not complete.
    fn drop(&mut self) {
        if !unfinished().remove(&self.address) {
            return;
        }
        let deleted = runtime().and_then(|runtime| {
            runtime.block_on(async {
                self.clear().await?;
                self.delete_named(&[MARK]).await
            })
        });
        if let Err(error) = deleted {
            console::tell(&format!(
                "gpuimg: warning: cannot delete what was written of {} ({error:#}): --overwrite replaces it",
                self.address
            ));
        }
    }
}
