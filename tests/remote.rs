//! Stores on a server: they give what the same folders give, only what is needed is fetched, and no server makes the program hang,
//! take memory without a bound, or print a secret. `tests/objects/run.sh` does the same with a server of S3.

use crate::support::{Run, folder, run};

/// An address and an output that is one, without the feature and with it.
#[test]
fn addresses_that_are_refused() {
    let place = folder(&[("a.pgm", b"P5 1 1 255 x")]);
    let refused = |command: &str, code: i32, words: &str| {
        let args: Vec<&str> = command.split(' ').collect();
        let Run {
            code: found,
            stderr,
            ..
        } = run(place.path(), &args, &[("GPUIMG_DEVICE", "cpu")]);
        assert_eq!((found, stderr.lines().count()), (code, 1), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    };
    let web = "web servers are only read: write a local file";
    refused("convert a.pgm https://u:secret@h/a/", 2, web);
    refused("combine a.pgm a.pgm a.pgm http://h/a.zarr?secret", 2, web);
    refused("project mean a.pgm http://h/a.zarr?secret", 2, web);
    let bucket = |words: &'static str| match cfg!(feature = "remote") {
        true => words,
        false => "this gpuimg writes no URLs: it was built without the feature `remote`",
    };
    let stores = bucket("only Zarr stores are written to a bucket");
    for name in ["b", "b/a.tif", "b/a.zarr/", "b/zarr", "/a.zarr", "b/"] {
        refused(&format!("convert a.pgm s3://{name}"), 2, stores);
    }
    refused("project mean a.pgm s3://b/a.partial --partial", 2, stores);
    refused(
        "convert a.pgm s3://u:secret@b/a.zarr",
        2,
        bucket("credentials are in the environment"),
    );
    let others = bucket("--resume and --shard are not possible for a store in a bucket");
    refused("convert a.pgm s3://b/a.zarr --resume", 2, others);
    refused("convert a.pgm s3://b/a.zarr --shard 1/2", 2, others);
    let several = bucket("2 inputs have 2 results, but s3://b/a.zarr is one image");
    refused("convert a.pgm a.pgm s3://b/a.zarr", 2, several);
    refused("crop http://u:secret@h/a.zarr --no", 2, "no option --no");
    refused(
        "http://u:secret@h/a.zarr?x=secret",
        2,
        "http://***@h/a.zarr?***",
    );
    if cfg!(not(feature = "remote")) {
        for verb in ["info", "sum"] {
            let command = format!("{verb} https://u:secret@host/a.zarr?sig=secret");
            let words = "https://***@host/a.zarr?***: this gpuimg reads no URLs: it was built without the feature `remote`";
            refused(&command, 1, words);
        }
    }
    assert_eq!(crate::support::listing(place.path()), ["a.pgm"]);
}

#[cfg(feature = "remote")]
mod served {
    use crate::support::batch::tree;
    use crate::support::server::{Answer, Request, Server};
    use crate::support::stacks::stack;
    use crate::support::{Kind, Run, binary, folder, image, run};
    use gpuimg::internals::image::Depth;
    use gpuimg::internals::image::metadata::Metadata;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    fn gpuimg(place: &Path, command: &str) -> Run {
        let args: Vec<&str> = command.split(' ').collect();
        // A server that is not there is not asked for long.
        let variables = [("GPUIMG_DEVICE", "cpu"), ("GPUIMG_REMOTE_TIMEOUT", "1")];
        run(place, &args, &variables)
    }

    fn done(place: &Path, command: &str) -> String {
        let Run {
            code,
            stdout,
            stderr,
        } = gpuimg(place, command);
        assert_eq!((code, &*stderr), (0, ""), "{command}");
        stdout
    }

    /// A folder with the stores `plain.zarr` and `sharded.zarr` of 3 pages of 70 × 50 samples.
    fn stores() -> TempDir {
        let pages: Vec<_> = [
            (70, 50, Kind::Noise),
            (70, 50, Kind::Narrow),
            (70, 50, Kind::Extremes),
        ]
        .map(|(width, height, kind)| image(width, height, 1, Depth::Sixteen, kind))
        .into();
        let place = folder(&[("in.tif", &stack(&pages, &Metadata::default()))]);
        let options = "--zarr-chunk 16 --zarr-levels 3";
        done(
            place.path(),
            &format!("convert in.tif plain.zarr {options}"),
        );
        let sharded = format!("convert in.tif sharded.zarr {options} --zarr-shard 32");
        done(place.path(), &sharded);
        place
    }

    fn serve(
        place: &TempDir,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Server {
        Server::start(place.path().into(), answer)
    }

    /// The paths below a store that were asked for, in the order of their names.
    fn paths(server: &Server, store: &str) -> Vec<String> {
        let requests = server.requests();
        let paths = requests.iter().map(|request| {
            let path = request.path.strip_prefix(store).expect("of the store");
            path.trim_start_matches('/').to_string()
        });
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths
    }

    #[test]
    fn a_server_gives_what_the_folder_gives() {
        let place = stores();
        let server = serve(&place, |_| Answer::File);
        for store in ["plain.zarr", "sharded.zarr"] {
            let (here, there) = (place.path().join(store), server.url(store));
            let here = here.to_str().expect("text");
            let both = |command: &str| {
                let given = [here, &there].map(|store| {
                    let out = folder(&[]);
                    let printed = done(out.path(), &command.replace("STORE", store));
                    (printed.replace(store, "STORE"), tree(out.path()))
                });
                assert!(
                    given[0] == given[1],
                    "{command}: {} {}",
                    given[0].0,
                    given[1].0
                );
            };
            both("convert STORE a.tif");
            both("convert STORE a.tif --level 2");
            both("convert STORE a.png --page 2");
            both("crop 15,14,20x9 STORE a.tif --level 1");
            both("normalize STORE out/ --quiet");
            both("rotate 90 STORE a.zarr --overwrite");
            both("preview STORE a.png --quiet");
            both("sum STORE");
            both("project mean STORE a.tif");
            both("convert STORE out/ --split --low-memory --quiet");
        }
        let url = server.url("plain.zarr/");
        let line = done(place.path(), &format!("info {url}"));
        let facts = "Zarr, 70×50 grey, 16 bits, 3 pages (3 z)";
        assert_eq!(line, format!("{url}: {facts}\n"));
        let json = done(place.path(), &format!("info --json {url}"));
        assert!(json.contains("\"bytes\":null"), "{json}");
    }

    /// The region covers 2 × 2 chunks of page 2. Nothing else of that page is read.
    #[test]
    fn a_crop_fetches_only_its_chunks() {
        let place = stores();
        let server = serve(&place, |_| Answer::File);
        let descriptions = ["0/zarr.json", "1/zarr.json", "2/zarr.json", "zarr.json"];
        let crop = |level: usize, store: &str| {
            let url = server.url(store);
            let command =
                format!("crop 14,14,5x5 {url} a.tif --page 2 --level {level} --overwrite");
            done(place.path(), &command);
            let paths = paths(&server, store);
            let is_chunk = |path: &&String| !path.ends_with("zarr.json");
            let (chunks, others): (Vec<_>, Vec<_>) =
                paths.iter().cloned().partition(|path| is_chunk(&path));
            assert_eq!(others, descriptions, "{store}");
            chunks
        };
        let chunks = ["0/c/1/0/0", "0/c/1/0/1", "0/c/1/1/0", "0/c/1/1/1"];
        assert_eq!(crop(0, "plain.zarr"), chunks);
        let level = chunks.map(|chunk| chunk.replacen('0', "1", 1));
        assert_eq!(crop(1, "plain.zarr"), level);
        // The index of a shard is read once, and each chunk.
        assert_eq!(crop(0, "sharded.zarr"), ["0/c/1/0/0"; 5]);
        done(place.path(), &format!("info {}", server.url("plain.zarr")));
        assert_eq!(paths(&server, "plain.zarr"), descriptions);
    }

    #[test]
    fn several_requests_are_under_way() {
        let place = stores();
        let server = serve(&place, |_| Answer::Late(Duration::from_millis(50)));
        done(
            place.path(),
            &format!("convert {} a.tif", server.url("plain.zarr")),
        );
        let most = server.most_at_once();
        assert!((4..=16).contains(&most), "{most}");
    }

    /// Runs a command that fails with one line, which names the address and has these words.
    fn fails(server: &Server, command: &str, words: &[&str]) -> Duration {
        let place = folder(&[]);
        let url = server.url("plain.zarr");
        let begun = Instant::now();
        let Run { code, stderr, .. } = gpuimg(place.path(), &command.replace("URL", &url));
        assert_eq!((code, stderr.lines().count()), (1, 1), "{stderr}");
        for word in words.iter().chain(&[&*url]) {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
        assert_eq!(crate::support::listing(place.path()), [""; 0]);
        begun.elapsed()
    }

    type MakeAnswer = fn() -> Answer;

    /// A server that answers a chunk in a way, and everything else as it should.
    fn chunk(answer: MakeAnswer) -> impl Fn(&Request) -> Answer + Send + Sync + 'static {
        move |request| match request.path.ends_with("zarr.json") {
            true => Answer::File,
            false => answer(),
        }
    }

    #[test]
    fn failures_are_named() {
        let place = stores();
        let convert = "convert URL a.tif";
        let status = |status| move |_: &Request| Answer::Status(status, "<html>secret".into());
        for (code, words) in [
            (
                403,
                "zarr.json: access denied (403): check the user and the signature",
            ),
            (401, "access denied (401)"),
            (
                404,
                "it has none of zarr.json, .zgroup, .zarray, so it is not a Zarr store",
            ),
            (
                500,
                "zarr.json: the server failed (500), after 5 retries: try again later",
            ),
            (418, "zarr.json: the server refuses the request (418)"),
        ] {
            let server = serve(&place, status(code));
            fails(&server, convert, &["cannot read", words]);
            let requests = server.requests();
            assert!(requests.len() <= 6, "{code}: {}", requests.len());
        }
        let denied = serve(&place, chunk(|| Answer::Status(403, String::new())));
        fails(&denied, convert, &["cannot read", ": access denied (403)"]);
        let half = serve(&place, chunk(|| Answer::Half));
        fails(
            &half,
            convert,
            &["the server broke off its answer", "after 5 retries"],
        );
        let whole = serve(&place, |_| Answer::WholeFile);
        let command = "crop 0,0,2x2 URL a.tif";
        let command = command.replace("URL", &whole.url("sharded.zarr"));
        let Run { code, stderr, .. } = gpuimg(place.path(), &command);
        assert_eq!(code, 1);
        assert!(stderr.contains("does not send parts of files"), "{stderr}");
        let gone = folder(&[]);
        let closed = "info http://127.0.0.1:1/a.zarr";
        let Run { code, stderr, .. } = gpuimg(gone.path(), closed);
        assert_eq!(code, 1);
        assert!(stderr.contains("cannot connect to the server"), "{stderr}");
    }

    /// What fails once is asked for again.
    #[test]
    fn a_server_that_fails_now_and_then() {
        let place = stores();
        let server = serve(&place, |request| match request.number % 3 {
            1 => Answer::Status(503, String::new()),
            2 => Answer::Half,
            _ => Answer::File,
        });
        done(
            place.path(),
            &format!("convert {} a.tif --level 1", server.url("plain.zarr")),
        );
        done(place.path(), "convert plain.zarr b.tif --level 1");
        let file = |name: &str| fs::read(place.path().join(name)).expect("written");
        assert!(file("a.tif") == file("b.tif"));
    }

    /// A chunk that is not stored has the fill value, as in a folder.
    #[test]
    fn absent_chunks_are_filled() {
        let place = stores();
        fs::remove_file(place.path().join("plain.zarr/0/c/0/1/1")).expect("a chunk");
        let server = serve(&place, |_| Answer::File);
        done(
            place.path(),
            &format!("convert {} a.tif", server.url("plain.zarr")),
        );
        done(place.path(), "convert plain.zarr b.tif");
        let file = |name: &str| fs::read(place.path().join(name)).expect("written");
        assert!(file("a.tif") == file("b.tif"));
    }

    /// With 1 second of patience a server that is silent is given up after 10, and one that sends forever when it has sent more than
    /// it may.
    #[test]
    fn hostile_servers_end() {
        let place = stores();
        let convert = "convert URL a.tif";
        let cases: [(MakeAnswer, &str); 6] = [
            (
                || Answer::Silence,
                "the server sends nothing for 1 s, after 5 retries",
            ),
            (
                || Answer::Endless(200, None),
                ": Content-Length Header missing",
            ),
            (
                || Answer::Endless(200, Some(1 << 40)),
                "it has 1099511627776 bytes, more than",
            ),
            (|| Answer::Endless(404, None), ""),
            (
                || Answer::Endless(400, Some(1 << 40)),
                ": the server refuses the request (400)",
            ),
            (
                || Answer::Redirect("/plain.zarr/0/c/0/0/0".into()),
                ": too many redirects",
            ),
        ];
        for (answer, words) in cases {
            let server = serve(&place, chunk(answer));
            if words.is_empty() {
                // An absent chunk, whatever the text says.
                done(
                    place.path(),
                    &format!("convert {} a.tif --overwrite", server.url("plain.zarr")),
                );
                continue;
            }
            let time = fails(&server, convert, &[words]);
            assert!(time < Duration::from_secs(60), "{words}: {time:?}");
        }
        let server = serve(&place, |_| Answer::Endless(200, Some(100 << 20)));
        fails(
            &server,
            "info URL",
            &["zarr.json: it has 104857600 bytes, more than 16777216"],
        );
    }

    /// The most memory of a process so far, in bytes.
    fn peak(process: u32) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib << 10)
    }

    /// Errors whose texts have no end, as fast as a machine sends to itself, for a second each.
    #[test]
    fn endless_answers_take_no_memory() {
        let place = stores();
        let server = serve(&place, |_| Answer::Endless(500, None));
        let mut child = Command::new(binary())
            .args(["info", &server.url("plain.zarr")])
            .env("GPUIMG_REMOTE_TIMEOUT", "1")
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut most = 0;
        while child.try_wait().expect("a child").is_none() {
            most = peak(child.id()).map_or(most, |peak| most.max(peak));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(most > 0 && most < 100 << 20, "{most}");
    }

    /// The server that a redirection names gets the name of the file, but neither the user nor the signature.
    #[test]
    fn a_redirection_gets_no_secret() {
        let place = stores();
        let other = serve(&place, |_| Answer::File);
        let to = other.url("");
        let server = serve(&place, move |request| {
            Answer::Redirect(format!("{to}{}", request.path))
        });
        let url = server.url("plain.zarr?sig=S3CRET");
        let url = url.replace("http://", "http://me:S3CRET@");
        done(place.path(), &format!("convert {url} a.tif --level 2"));
        let secrets = ["S3CRET", "bWU6UzNDUkVU"];
        let sent = server.requests();
        let sent = sent.iter().map(|request| format!("{request:?}"));
        assert!(
            sent.flat_map(|it| secrets.map(|secret| it.contains(secret)))
                .all(|it| it)
        );
        let others = other.requests();
        assert!(!others.is_empty());
        for request in others {
            let text = format!("{request:?}");
            assert!(
                !secrets.iter().any(|secret| text.contains(secret)),
                "{text}"
            );
        }
    }

    /// A server that wants a user and a signature gets both, and nothing else has them: no message, report, journal or table.
    #[test]
    fn secrets_are_sent_and_not_printed() {
        let place = stores();
        let server = serve(&place, |request| {
            // base64("me:pass word")
            let authorized = request.header("authorization") == Some("Basic bWU6cGFzcyB3b3Jk");
            match authorized && request.query == "sig=S3CRET&x=1" {
                true => Answer::File,
                false => Answer::Status(403, String::new()),
            }
        });
        let address = |name: &str, password: &str| {
            format!(
                "http://me:{password}@127.0.0.1:{}/{name}?sig=S3CRET&x=1",
                server.port
            )
        };
        let url = address("plain.zarr", "pass%20word");
        let wrong = address("plain.zarr", "pass%20w");
        let absent = address("none.zarr", "pass%20word");
        for (command, expected) in [
            (format!("normalize {url} out/ -v --report report.jsonl"), 0),
            (format!("normalize {url} out/ --resume --stats=json"), 0),
            (
                format!("normalize {url} {absent} out2/ --report page.html"),
                1,
            ),
            (format!("convert {wrong} b.tif"), 1),
            (format!("convert {url} b.tif --dry-run"), 0),
            (format!("info --json {url}"), 0),
            (format!("sum {url} --stats"), 0),
            (format!("convert {url} {url} b.tif"), 2),
            (format!("project mean {url} p.tif --report p.jsonl"), 0),
            (format!("normalize {url} {url} {url} c.png"), 2),
            (format!("normalize {url} c.png --range-from {wrong}"), 1),
            (format!("project mean {url} p.partial --partial"), 0),
            (
                format!("calibrate --dark {url} {url} out3/ --report c.jsonl --stats=json"),
                0,
            ),
        ] {
            let Run {
                code,
                stdout,
                stderr,
            } = gpuimg(place.path(), &command);
            assert_eq!(code, expected, "{command}: {stderr}");
            for printed in [stdout, stderr] {
                let is_secret = printed.contains("S3CRET") || printed.contains("pass");
                assert!(!is_secret, "{command}: {printed}");
            }
        }
        for (name, bytes) in tree(place.path()) {
            let text = String::from_utf8_lossy(&bytes);
            let is_secret = text.contains("S3CRET") || text.contains("pass%20");
            assert!(
                !is_secret && !name.to_string_lossy().contains("S3CRET"),
                "{name:?}"
            );
        }
        assert!(
            place.path().join("out/plain.zarr").is_dir()
                || place.path().join("out/plain.tif").is_file()
        );
    }
}
