//! A server of HTTP on this machine that serves a folder, counts what is asked for, and behaves as badly as a test wants.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The path below the server, without the query.
    pub path: String,
    pub query: String,
    /// The headers by their names in small letters.
    pub headers: Vec<(String, String)>,
    /// How many requests were before it.
    pub number: usize,
}

/// What a server answers.
pub enum Answer {
    /// The file, or a part of it.
    File,
    /// The file, without regard to the part that is asked for.
    WholeFile,
    /// The file after this time.
    Late(Duration),
    /// This status with this body.
    Status(u16, String),
    /// The address of something else.
    Redirect(String),
    /// Nothing, ever.
    Silence,
    /// Half of the file, and the end of the connection.
    Half,
    /// This status, and a body without an end; with a length, if there is one.
    Endless(u16, Option<u64>),
}

pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    /// The most requests that were under way at the same time.
    most: Arc<AtomicUsize>,
}

impl Server {
    /// Serves a folder; `answer` chooses what becomes of each request.
    pub fn start(
        root: PathBuf,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Server {
            port: listener.local_addr().expect("an address").port(),
            requests: Arc::default(),
            most: Arc::default(),
        };
        let (requests, most) = (server.requests.clone(), server.most.clone());
        let shared = Arc::new((root, answer, AtomicUsize::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, most, shared) = (requests.clone(), most.clone(), shared.clone());
                thread::spawn(move || {
                    let (root, answer, under_way) = &*shared;
                    let Some(request) = request(&stream, &requests) else {
                        return;
                    };
                    let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    let answer = answer(&request);
                    if let Answer::Late(time) = answer {
                        thread::sleep(time);
                    }
                    // Before the answer, after which another request may come.
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    // Who asks may be gone.
                    let _ = reply(&stream, root, &request, answer);
                });
            }
        });
        server
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// What was asked for, in order; the list is empty afterwards.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }

    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| other == name);
        header.map(|(_, value)| value.as_str())
    }
}

fn request(stream: &TcpStream, requests: &Mutex<Vec<Request>>) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let target = first.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = lines.map_while(|line| {
        let line = line.ok()?;
        let (name, value) = line.split_once(": ")?;
        Some((name.to_lowercase(), value.to_string()))
    });
    let headers: Vec<(String, String)> = headers.collect();
    let mut requests = requests.lock().expect("no panic");
    let request = Request {
        path: path.trim_start_matches('/').into(),
        query: query.into(),
        headers,
        number: requests.len(),
    };
    requests.push(request.clone());
    Some(request)
}

fn reply(
    mut stream: &TcpStream,
    root: &Path,
    request: &Request,
    answer: Answer,
) -> std::io::Result<()> {
    let file = fs::read(root.join(&request.path));
    match answer {
        Answer::File | Answer::Late(_) | Answer::WholeFile => {
            let Ok(file) = file else {
                return head(stream, 404, &[("Content-Length", "0")]);
            };
            let range = request
                .header("range")
                .filter(|_| !matches!(answer, Answer::WholeFile));
            let Some(range) = range.and_then(|range| range.strip_prefix("bytes=")) else {
                let length = file.len().to_string();
                head(stream, 200, &[("Content-Length", &length)])?;
                return stream.write_all(&file);
            };
            let (first, last) = range.split_once('-').expect("a range");
            let (start, end) = match first.parse::<usize>() {
                Ok(start) => (start, last.parse::<usize>().expect("an end") + 1),
                Err(_) => {
                    let bytes: usize = last.parse().expect("a number of bytes");
                    (file.len().saturating_sub(bytes), file.len())
                }
            };
            let end = end.min(file.len());
            let range = format!("bytes {start}-{}/{}", end - 1, file.len());
            let length = (end - start).to_string();
            let headers = [("Content-Length", &*length), ("Content-Range", &range)];
            head(stream, 206, &headers)?;
            stream.write_all(&file[start..end])
        }
        Answer::Status(status, body) => {
            head(
                stream,
                status,
                &[("Content-Length", &body.len().to_string())],
            )?;
            stream.write_all(body.as_bytes())
        }
        Answer::Redirect(to) => head(stream, 302, &[("Content-Length", "0"), ("Location", &to)]),
        Answer::Silence => loop {
            thread::sleep(Duration::from_secs(60));
        },
        Answer::Half => {
            let file = file.unwrap_or_default();
            head(stream, 200, &[("Content-Length", &file.len().to_string())])?;
            stream.write_all(&file[..file.len() / 2])
        }
        Answer::Endless(status, length) => {
            let length = length.map(|length| length.to_string());
            let headers = length.as_ref().map(|length| ("Content-Length", &**length));
            head(stream, status, headers.as_slice())?;
            loop {
                stream.write_all(&[b'x'; 1 << 16])?;
            }
        }
    }
}

fn head(mut stream: &TcpStream, status: u16, headers: &[(&str, &str)]) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())
}
