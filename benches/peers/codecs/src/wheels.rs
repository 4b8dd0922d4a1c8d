//! Libraries that come as Python wheels, in a process of their own (`wheels.py`), which measures them itself.

use crate::Times;
use gpuimg::internals::image::Shape;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub struct Wheels {
    process: RefCell<(Child, BufReader<ChildStdout>)>,
    /// The libraries that are there.
    pub found: Vec<String>,
}

impl Wheels {
    /// Starts the interpreter that the environment's PYTHON names.
    pub fn start() -> Wheels {
        let python = std::env::var("PYTHON").unwrap_or("python3".into());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/wheels.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python (the environment's PYTHON)");
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let names = line.trim().split(',').filter(|name| !name.is_empty());
        Wheels {
            found: names.map(String::from).collect(),
            process: RefCell::new((child, answers)),
        }
    }

    /// Has a library work on a file.
    pub fn ask(
        &self,
        name: &str,
        verb: &str,
        file: &Path,
        threads: usize,
        len: usize,
        shape: Shape,
    ) -> Times {
        let (child, answers) = &mut *self.process.borrow_mut();
        let mut line = String::new();
        let (file, width, channels) = (file.display(), shape.width, shape.channels);
        let request = format!("{name} {verb} {file} {threads} {len} {width} {channels}\n");
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(request.as_bytes())
            .unwrap();
        answers.read_line(&mut line).unwrap();
        let [cpu, wall, len] = line
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect::<Vec<f64>>()[..]
        else {
            panic!("{name} cannot {verb} {file}");
        };
        Times {
            cpu,
            wall,
            len: len as usize,
        }
    }
}
