//! Zarr stores on servers, which the crate `object_store` reads: http, https and s3. Its requests run on one thread of tokio, and
//! the threads that make them wait.
//!
//! A server may be hostile: no answer is longer in memory than what was asked for, an error's text is cut, and each request has a
//! time-out and a limit on retries.

mod failure;
mod guard;
mod upload;

use super::base64::base64;
use super::store::{DESCRIPTIONS, Part, Span};
use super::url::{NO_CREDENTIALS, S3, Url};
use crate::os::interrupt::NO_THREAD;
use anyhow::{Context, Result, anyhow, bail, ensure};
use failure::{Failure, Server};
use futures_util::StreamExt;
use guard::Guard;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as Location;
use object_store::{
    BackoffConfig, ClientConfigKey, GetOptions, GetRange, HeaderValue, ObjectStore, RetryConfig,
};
use percent_encoding::percent_decode_str;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub use upload::{Upload, unfinished_uploads};

/// The parts of a store that are best read at the same time: what hides the time to a server on another continent, and what a
/// small server stands.
pub const READS: usize = 16;

/// The most bytes of the file that describes a store.
const MOST_DESCRIPTION: u64 = 16 << 20;

/// How often a request is tried again.
const RETRIES: usize = 5;

/// The seconds without a byte after which a request is tried again, unless the environment has another number.
const PATIENCE: u64 = 30;

/// The variable with that number.
const PATIENCE_VARIABLE: &str = "GPUIMG_REMOTE_TIMEOUT";

/// The time for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How often that time a whole request may take, and all that is tried for one.
const SLOWEST: u32 = 10;

/// The thread that sends requests and receives answers.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("requests");
    builder.enable_all().build()
});

/// The threads that wait for parts of stores, and decode them.
static POOL: LazyLock<Result<ThreadPool, String>> = LazyLock::new(|| {
    let threads = READS.max(rayon::current_num_threads());
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    pool.build().map_err(|_| NO_THREAD.into())
});

/// A store on a server.
#[derive(Debug)]
pub struct Remote {
    store: Box<dyn ObjectStore>,
    server: Server,
    /// What is before the names of its files, with a slash at its end, or nothing.
    prefix: String,
    /// The files that were read when it was opened, or were not there.
    known: HashMap<&'static str, Option<Vec<u8>>>,
    pool: &'static ThreadPool,
}

impl Remote {
    /// Opens a store by the first file that describes it, and returns this file.
    ///
    /// # Errors
    /// An address that is not one, a server that cannot be reached, and one without such a store.
    pub fn open(url: &Url) -> Result<(Remote, Vec<u8>)> {
        ensure!(!url.host.is_empty(), "the URL names no server");
        let is_bucket = url.scheme == S3;
        let (store, prefix) = if is_bucket {
            (bucket(url, patience())?, format!("{}/", url.path))
        } else {
            (server(url)?, String::new())
        };
        let mut remote = Remote {
            store,
            server: Server {
                is_bucket,
                patience: patience(),
            },
            prefix: if url.path.is_empty() {
                String::new()
            } else {
                prefix
            },
            known: HashMap::new(),
            pool: pool()?,
        };
        let mut denied = None;
        for name in DESCRIPTIONS {
            match remote.get(name, &Span::All, MOST_DESCRIPTION) {
                Ok(Part { bytes, .. }) => {
                    remote.known.insert(name, Some(bytes.clone()));
                    return Ok((remote, bytes));
                }
                Err(Failure::Absent) => {}
                // S3 denies what is not there to those who may not list the bucket.
                Err(Failure::Denied(error)) => {
                    denied.get_or_insert(error.context(name));
                }
                Err(Failure::Other(error)) => return Err(error.context(name)),
            }
            remote.known.insert(name, None);
        }
        match denied {
            Some(error) => Err(error),
            None => bail!(
                "it has none of {}, so it is not a Zarr store (only OME-Zarr is read from a URL: download other files)",
                DESCRIPTIONS.join(", ")
            ),
        }
    }

    /// Reads a part of a file, of `most` bytes at most; `None` if the file does not exist.
    ///
    /// # Errors
    /// A longer part, and one that cannot be read.
    pub fn read(&self, name: &str, span: Span, most: u64) -> Result<Option<Part>> {
        if let Some(known) = self.known.get(name).filter(|_| span == Span::All) {
            return Ok(known.clone().map(|bytes| Part {
                length: bytes.len() as u64,
                bytes,
            }));
        }
        match self.get(name, &span, most) {
            Ok(part) => Ok(Some(part)),
            Err(Failure::Absent) => Ok(None),
            Err(failure) => Err(failure.error()),
        }
    }

    /// Runs work on enough threads to have `READS` requests under way.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    fn get(&self, name: &str, span: &Span, most: u64) -> Result<Part, Failure> {
        let location = location(&self.prefix, name).map_err(Failure::Other)?;
        let runtime = runtime().map_err(Failure::Other)?;
        runtime.block_on(async {
            let mut attempt = 0;
            loop {
                match self.get_once(&location, span, most).await {
                    // Without a tag of the content, the crate cannot go on with a body that broke off.
                    Err(Broken::Off(_)) if attempt < RETRIES => attempt += 1,
                    Err(Broken::Off(error) | Broken::Down(error)) => {
                        return Err(self.server.failure(&error));
                    }
                    Err(Broken::Wrong(error)) => return Err(Failure::Other(error)),
                    Ok(part) => return Ok(part),
                }
            }
        })
    }

    async fn get_once(&self, location: &Location, span: &Span, most: u64) -> Result<Part, Broken> {
        let range = match span {
            Span::All => None,
            Span::Bytes(range) => Some(GetRange::Bounded(range.clone())),
            Span::Last(bytes) => Some(GetRange::Suffix(*bytes)),
        };
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let answer = self.store.get_opts(location, options).await;
        let answer = answer.map_err(Broken::Down)?;
        let length = answer.meta.size;
        let expected = answer.range.end.saturating_sub(answer.range.start);
        if expected > most {
            let error = anyhow!("it has {expected} bytes, more than {most}");
            return Err(Broken::Wrong(error));
        }
        let has_tag = answer.meta.e_tag.is_some();
        let mut stream = answer.into_stream();
        // Not as long as the server says before it has sent so much.
        let mut bytes = Vec::new();
        while let Some(next) = stream.next().await {
            let next = next.map_err(if has_tag { Broken::Down } else { Broken::Off })?;
            bytes.extend_from_slice(&next);
            if bytes.len() as u64 > expected {
                break;
            }
        }
        if bytes.len() as u64 != expected {
            let error = anyhow!("the server sent {} bytes of {expected}", bytes.len());
            return Err(Broken::Wrong(error));
        }
        Ok(Part { bytes, length })
    }
}

/// How reading failed.
enum Broken {
    /// The body broke off, and may be asked for again.
    Off(object_store::Error),
    /// The crate has given up.
    Down(object_store::Error),
    /// The answer is not what was asked for.
    Wrong(anyhow::Error),
}

fn runtime() -> Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|_| anyhow!(NO_THREAD))
}

fn pool() -> Result<&'static ThreadPool> {
    POOL.as_ref().map_err(|error| anyhow!("{error}"))
}

/// The place of a file of a store.
fn location(prefix: &str, name: &str) -> Result<Location> {
    let location = Location::parse(format!("{prefix}{name}"));
    location.context("its name cannot be one of an object")
}

/// The time without a byte after which a request is tried again.
fn patience() -> Duration {
    let seconds = env::var(PATIENCE_VARIABLE).ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.filter(|&seconds| seconds > 0).unwrap_or(PATIENCE))
}

/// How requests are retried, each of which may wait for `patience` until a byte comes.
fn retries(patience: Duration) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            max_backoff: Duration::from_secs(5),
            ..BackoffConfig::default()
        },
        max_retries: RETRIES,
        retry_timeout: patience * SLOWEST,
    }
}

/// The server of an address. The names of files are added to the address as it is, with its query.
fn server(url: &Url) -> Result<Box<dyn ObjectStore>> {
    let Url {
        scheme,
        user,
        host,
        path,
        query,
    } = url;
    let mut authorization = None;
    if let Some(user) = user {
        let user: Vec<u8> = percent_decode_str(user).collect();
        let basic = format!("Basic {}", base64(&user));
        let mut value = HeaderValue::from_str(&basic).context("its user and password")?;
        value.set_sensitive(true);
        authorization = Some(value);
    }
    install_encryption();
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    let client = reqwest::Client::builder()
        // The crate's own client would give the query to the server of a redirection.
        .referer(false)
        .user_agent(concat!("gpuimg/", env!("CARGO_PKG_VERSION")))
        .https_only(*scheme == "https://")
        .connect_timeout(CONNECT)
        .read_timeout(patience())
        .timeout(patience() * SLOWEST);
    let client = client.build().context("cannot set up connections")?;
    let builder = HttpBuilder::new()
        .with_url(format!("{scheme}{host}/{path}{query}"))
        .with_retry(retries(patience()))
        .with_http_connector(Guard {
            authorization,
            client: Some(client),
        });
    // The error would have the address.
    let store = builder
        .build()
        .map_err(|_| anyhow!("the URL is not valid"))?;
    Ok(Box::new(store))
}

/// Chooses the library that encrypts connections. If the process has chosen one already, that one stays.
fn install_encryption() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The bucket of an address, with what the environment says about its server and the credentials. A request is retried
/// if no byte comes within `patience`.
fn bucket(url: &Url, patience: Duration) -> Result<Box<dyn ObjectStore>> {
    ensure!(url.user.is_none() && url.query.is_none(), NO_CREDENTIALS);
    install_encryption();
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(url.host)
        .with_retry(retries(patience))
        .with_http_connector(Guard {
            authorization: None,
            client: None,
        });
    let mut unless_set = |variable: &str, key: ClientConfigKey, value: String| {
        if env::var_os(variable).is_none() {
            let key = AmazonS3ConfigKey::Client(key);
            builder = std::mem::take(&mut builder).with_config(key, value);
        }
    };
    let seconds = |time: Duration| format!("{} seconds", time.as_secs());
    unless_set(
        "AWS_READ_TIMEOUT",
        ClientConfigKey::ReadTimeout,
        seconds(patience),
    );
    unless_set(
        "AWS_TIMEOUT",
        ClientConfigKey::Timeout,
        seconds(patience * SLOWEST),
    );
    let endpoints = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let endpoint = endpoints.iter().find_map(|name| env::var(name).ok());
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        // Who names such a server has decided.
        unless_set("AWS_ALLOW_HTTP", ClientConfigKey::AllowHttp, "true".into());
    }
    let store = builder.build();
    let store = store.map_err(|error| match error.source() {
        // It names a variable, and no value of one.
        Some(source) => anyhow!("the settings of S3 in the environment: {source}"),
        None => anyhow!("the settings of S3 in the environment are not valid"),
    })?;
    Ok(Box::new(store))
}
