//! The connection to a server: adds the authorization to requests, and makes an answer that is an error one error with its status,
//! and without its text, which may have no end.

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, HeaderValue};
use reqwest::Client;
use std::fmt;
use std::pin::Pin;
use thiserror::Error;

/// The bytes of an error's text in which its code is looked for.
const MOST_TEXT: usize = 16 << 10;

/// The longest code: `InvalidAccessKeyId` has 18 letters.
const MOST_CODE: usize = 64;

/// How the addresses begin of the services that give a machine of a cloud its credentials.
const MACHINE: &str = "169.254.";

/// Makes connections.
pub struct Guard {
    /// The header of each request.
    pub authorization: Option<HeaderValue>,
    /// What sends requests; `None` is the crate's choice.
    pub client: Option<Client>,
}

/// An answer that is an error.
#[derive(Debug, Error)]
#[error("{status}{}{code}", if code.is_empty() { "" } else { " " })]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// The code of S3, or nothing.
    pub code: String,
}

/// A connection.
struct Guarded {
    client: HttpClient,
    authorization: Option<HeaderValue>,
}

impl HttpConnector for Guard {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = match &self.client {
            Some(client) => HttpClient::new(client.clone()),
            None => ReqwestConnector::default().connect(options)?,
        };
        Ok(HttpClient::new(Guarded {
            client,
            authorization: self.authorization.clone(),
        }))
    }
}

impl Guarded {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert("authorization", value.clone());
        }
        let host = request.uri().host().unwrap_or_default();
        let is_of_machine = host.starts_with(MACHINE);
        let answer = self.client.execute(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        // Other errors stay when a request is repeated.
        let kind = match status {
            408 | 429 | 500.. => HttpErrorKind::Request,
            _ => HttpErrorKind::Unknown,
        };
        let code = code(answer.into_body()).await;
        let refusal = if is_of_machine {
            Refusal {
                status: 401,
                code: "NoCredentials".into(),
            }
        } else {
            Refusal { status, code }
        };
        Err(HttpError::new(kind, refusal))
    }
}

/// The code in the text of an error of S3.
async fn code(body: HttpResponseBody) -> String {
    let mut text = Vec::new();
    let mut stream = body.bytes_stream();
    while let Some(Ok(bytes)) = stream.next().await {
        text.extend_from_slice(&bytes);
        if text.len() > MOST_TEXT {
            break;
        }
    }
    let text = String::from_utf8_lossy(&text);
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("", |(code, _)| code);
    let is_code = code.len() <= MOST_CODE && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { code.into() } else { String::new() }
}

impl HttpService for Guarded {
    /// What the crate `async-trait` makes of an asynchronous function.
    fn call<'service, 'call>(
        &'service self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'service: 'call,
        Self: 'call,
    {
        Box::pin(self.send(request))
    }
}

// Without the authorization.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Guarded")
    }
}
