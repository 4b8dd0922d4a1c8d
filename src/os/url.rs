//! Addresses of stores on a server: `https://host/image.zarr`, `http://…` and `s3://bucket/key.zarr`. Whatever in them can be a
//! secret, a user with a password and a query with a signature, is left out of messages.

use super::system;
use anyhow::{Result, bail};
use std::borrow::Cow;
use std::path::Path;

/// The scheme of a bucket.
pub const S3: &str = "s3://";

/// The schemes of the addresses that are read.
const SCHEMES: [&str; 3] = ["https://", "http://", S3];

/// What is wrong with a program without the feature, and what to do.
pub const NO_FEATURE: &str = "it was built without the feature `remote` (build it with cargo install --path . --features remote)";

/// What is wrong with the address of a bucket that has more than a name and a path, and what to do.
pub const NO_CREDENTIALS: &str = "a URL of S3 has no user and no query: credentials are in the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// What replaces a secret.
const HIDDEN: &str = "***";

/// The parts of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// The scheme with its `://`.
    pub scheme: &'static str,
    /// `user:password`, percent-encoded.
    pub user: Option<&'a str>,
    /// The host with its port, or the bucket.
    pub host: &'a str,
    /// What follows, without slashes at its ends.
    pub path: &'a str,
    /// What follows the first question mark.
    pub query: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// The address that a path is; `None` for the path of a file.
    pub fn parse(path: &'a Path) -> Option<Url<'a>> {
        Url::from_text(path.to_str()?)
    }

    fn from_text(text: &'a str) -> Option<Url<'a>> {
        let scheme = SCHEMES.into_iter().find(|scheme| {
            let start = text.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })?;
        let rest = &text[scheme.len()..];
        // A fragment is for browsers alone.
        let rest = rest.split('#').next().unwrap_or(rest);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        Some(Url {
            scheme,
            user,
            host,
            path: path.trim_matches('/'),
            query,
        })
    }

    /// The last name in the path, or the host.
    pub fn name(&self) -> &'a str {
        match self.path.rsplit('/').next() {
            None | Some("") => self.host,
            Some(name) => name,
        }
    }
}

/// Refuses an address as an output, unless it is that of a Zarr store in a bucket.
///
/// # Errors
/// Says what to do instead.
pub fn check_output(path: &Path) -> Result<()> {
    let (Some(url), Some(address)) = (Url::parse(path), shown(path)) else {
        return Ok(());
    };
    let is_store = !url.host.is_empty()
        && url.path.to_ascii_lowercase().ends_with(".zarr")
        && address.ends_with(url.path);
    let why = if url.scheme != S3 {
        "web servers are only read: write a local file and copy it to the server".into()
    } else if cfg!(not(feature = "remote")) {
        format!("this gpuimg writes no URLs: {NO_FEATURE}, or write a local file and copy it")
    } else if url.user.is_some() || url.query.is_some() {
        NO_CREDENTIALS.into()
    } else if !is_store {
        "only Zarr stores are written to a bucket: give a name such as s3://bucket/image.zarr (write other files locally, and copy them)".into()
    } else {
        return Ok(());
    };
    bail!("cannot write {address}: {why}")
}

/// Whether one of two paths is the address of a store in a bucket, and the other that of the same store, or of one in it.
pub fn overlap(one: &Path, other: &Path) -> bool {
    let (Some(one), Some(other)) = (Url::parse(one), Url::parse(other)) else {
        return false;
    };
    let is_bucket = one.scheme == S3 && other.scheme == S3 && one.host == other.host;
    let [one, other] = [one, other].map(|url| Path::new(url.path));
    is_bucket && (one.starts_with(other) || other.starts_with(one))
}

/// Whether a path is the address of a store on a server.
pub fn is_url(path: &Path) -> bool {
    // Most paths are known by their bytes to be none.
    let bytes = system::bytes_of(path.as_os_str());
    bytes.windows(3).any(|three| three == b"://") && Url::parse(path).is_some()
}

/// An address without its secrets; `None` for the path of a file.
pub fn shown(path: &Path) -> Option<String> {
    let url = Url::parse(path).filter(|_| is_url(path))?;
    Some(without_secrets(&url, path.to_str()?))
}

/// A text without the secrets of the addresses in it.
pub fn redacted(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(mark) = rest.find("://") {
        let start = rest[..mark]
            .rfind(|c: char| !c.is_ascii_alphanumeric())
            .map_or(0, |before| before + 1);
        // An address in a text ends where words do.
        let ends = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>');
        let end = rest[mark..].find(ends).map_or(rest.len(), |end| mark + end);
        shown.push_str(&rest[..start]);
        let address = &rest[start..end];
        match Url::from_text(address) {
            Some(url) => shown.push_str(&without_secrets(&url, address)),
            None => shown.push_str(address),
        }
        rest = &rest[end..];
    }
    shown.push_str(rest);
    shown.into()
}

fn without_secrets(url: &Url, address: &str) -> String {
    let Url {
        scheme,
        user,
        host,
        query,
        ..
    } = url;
    let after = address[scheme.len()..].split(['?', '#']).next();
    let after = after.unwrap_or_default();
    let path = after.find('/').map_or("", |slash| &after[slash..]);
    let user = match user {
        Some(_) => format!("{HIDDEN}@"),
        None => String::new(),
    };
    // What is not a port may be a password with a slash in it.
    let has_port = |host: &str| {
        let port = host.rsplit_once(':').map_or("", |(_, port)| port);
        host.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let host = if has_port(host) { host } else { HIDDEN };
    let query = match query {
        Some(_) => format!("?{HIDDEN}"),
        None => String::new(),
    };
    format!("{scheme}{user}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses() {
        let url = |text| Url::parse(Path::new(text));
        let parts = url("https://me:p%40ss@host:80/a/b.zarr/?sig=x&y#z").expect("an address");
        let expected = Url {
            scheme: "https://",
            user: Some("me:p%40ss"),
            host: "host:80",
            path: "a/b.zarr",
            query: Some("sig=x&y"),
        };
        assert_eq!(parts, expected);
        assert_eq!(parts.name(), "b.zarr");
        let bucket = url("S3://bucket").expect("an address");
        assert_eq!((bucket.host, bucket.path), ("bucket", ""));
        assert_eq!(bucket.name(), "bucket");
        let quoted = Path::new("http://u:'p q'@h/a");
        assert_eq!(shown(quoted).as_deref(), Some("http://***@h/a"));
        for file in ["a.zarr", "./s3://a", "ftp://a/b", "https:/a", "scan.h5:/a"] {
            assert!(!is_url(Path::new(file)), "{file}");
        }
        assert!(is_url(Path::new("s3://a/b")));
    }

    #[test]
    fn secrets_are_left_out() {
        for (text, shown) in [
            ("https://host/a.zarr", "https://host/a.zarr"),
            ("http://u:p@host/a/", "http://***@host/a/"),
            (
                "cannot read 'HTTPS://u@h/a?sig=1': no",
                "cannot read 'https://***@h/a?***': no",
            ),
            ("s3://k:s@b/c#d s3://b/c?x", "s3://***@b/c s3://b/c?***"),
            ("file://u:p@h/a?b", "file://u:p@h/a?b"),
            ("http://u:p/q@h/a", "http://***/q@h/a"),
            (
                "http://[::1]:80/a http://[::1]/",
                "http://[::1]:80/a http://[::1]/",
            ),
            ("a://", "a://"),
            ("/a?b", "/a?b"),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }
}
