//! What the errors of a server mean, and what to do.

use super::guard::Refusal;
use super::{PATIENCE_VARIABLE, RETRIES};
use crate::os::reason::reason;
use anyhow::anyhow;
use object_store::client::{HttpError, HttpErrorKind};
use std::env;
use std::error::Error;
use std::io;
use std::time::Duration;

/// The variables that give credentials, or say that none are needed.
const CREDENTIALS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Why a request has failed.
pub enum Failure {
    /// There is no such file.
    Absent,
    /// The server may not do it for us.
    Denied(anyhow::Error),
    Other(anyhow::Error),
}

/// What explains the errors of a server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Whether it has a bucket of S3.
    pub is_bucket: bool,
    /// The time without an answer after which a request is tried again.
    pub patience: Duration,
}

impl Server {
    /// What an error means, and what to do. The crate's own text has the address with its secrets.
    pub fn failure(self, error: &object_store::Error) -> Failure {
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        let (mut http, mut refusal, mut last) = (None, None, None);
        while let Some(error) = source {
            http = http.or(error.downcast_ref::<HttpError>());
            refusal = refusal.or(error.downcast_ref::<Refusal>());
            last = Some(error);
            source = error.source();
        }
        if let Some(refusal) = refusal {
            return self.refused(refusal);
        }
        let cause = match last.and_then(|last| last.downcast_ref::<io::Error>()) {
            Some(error) => reason(error),
            None => last.map(ToString::to_string).unwrap_or_default(),
        };
        let retried = format!("after {RETRIES} retries");
        Failure::Other(match http.map(HttpError::kind) {
            _ if matches!(error, object_store::Error::NotSupported { .. }) => anyhow!(
                "the server does not send parts of files, which chunks in shards need (it ignores the header Range): download the store"
            ),
            Some(HttpErrorKind::Connect | HttpErrorKind::Timeout)
                if self.is_bucket && !has_credentials() =>
            {
                anyhow!(
                    "there are no credentials in the environment, and no service of the machine gives any: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket"
                )
            }
            Some(HttpErrorKind::Timeout) => anyhow!(
                "the server sends nothing for {} s, {retried}: check the network, or wait longer with {PATIENCE_VARIABLE}=SECONDS",
                self.patience.as_secs()
            ),
            _ if cause.contains("certificate") => anyhow!(
                "the server's certificate is refused ({cause}): check the name of the server; SSL_CERT_FILE=FILE names further authorities"
            ),
            Some(HttpErrorKind::Connect) if cause.contains("corrupt message") => {
                anyhow!(
                    "the server sends no encrypted answers ({cause}): check its name, port and scheme"
                )
            }
            Some(HttpErrorKind::Connect) => anyhow!(
                "cannot connect to the server ({cause}), {retried}: check its name and the network"
            ),
            Some(HttpErrorKind::Interrupted | HttpErrorKind::Request) => {
                anyhow!("the server broke off its answer ({cause}), {retried}: try again later")
            }
            _ => anyhow!("{cause}"),
        })
    }

    /// The meaning of an answer that is an error.
    fn refused(self, refusal: &Refusal) -> Failure {
        let Refusal { status, code } = refusal;
        let denied = match self.is_bucket {
            true if !has_credentials() => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket"
            }
            true => "check the rights of these credentials",
            false => "check the user and the signature in the URL",
        };
        Failure::Other(match status {
            404 if code == "NoSuchBucket" => {
                anyhow!("there is no such bucket: check its name, AWS_REGION and AWS_ENDPOINT_URL")
            }
            404 | 405 | 410 => return Failure::Absent,
            401 | 403 => return Failure::Denied(anyhow!("access denied ({refusal}): {denied}")),
            300..400 if self.is_bucket => {
                anyhow!("the bucket is in another region ({refusal}): set AWS_REGION")
            }
            400 if self.is_bucket => {
                anyhow!(
                    "the server refuses the request ({refusal}): check AWS_REGION and the credentials"
                )
            }
            300..400 => anyhow!("the server sends us elsewhere ({refusal}), but not to an address"),
            408 | 429 | 500.. => {
                anyhow!("the server failed ({refusal}), after {RETRIES} retries: try again later")
            }
            _ => anyhow!("the server refuses the request ({refusal})"),
        })
    }
}

impl Failure {
    /// The error of a request for which there must be such a file.
    pub fn error(self) -> anyhow::Error {
        match self {
            Failure::Absent => anyhow!(
                "the server has no such object: check the name of the bucket, AWS_REGION and AWS_ENDPOINT_URL"
            ),
            Failure::Denied(error) | Failure::Other(error) => error,
        }
    }
}

fn has_credentials() -> bool {
    CREDENTIALS.iter().any(|name| env::var_os(name).is_some())
}
