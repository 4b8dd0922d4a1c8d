//! The four papers, named, and their systems, one by one: the access pattern and the lesson. What
//! they claim of two rows is in `claims`.

use std::sync::LazyLock;

/// The paper that a system comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// "CUDA: performance aspects of typical tasks".
    TypicalTasks,
    /// "Transposing a matrix".
    Transposing,
    /// "GPGPU optimisation by the example of a sum".
    Sum,
    /// "Methods of effective organisation of parallel computing on GPUs" (lecture notes).
    Lecture,
    /// No paper: a system that this program adds.
    Own,
}

impl Paper {
    /// The papers.
    pub const ALL: [Paper; 4] = [
        Paper::TypicalTasks,
        Paper::Transposing,
        Paper::Sum,
        Paper::Lecture,
    ];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Paper::TypicalTasks => "CUDA: performance aspects of typical tasks",
            Paper::Transposing => "Transposing a matrix",
            Paper::Sum => "GPGPU optimisation by the example of a sum",
            Paper::Lecture => "Methods of effective organisation of parallel computing on GPUs",
            Paper::Own => "gpuimg",
        }
    }

    /// Author, title, where it appeared, and year, as far as the text gives them; and its GPUs.
    pub fn cited(self) -> &'static str {
        match self {
            Paper::TypicalTasks => {
                "\"CUDA: performance aspects of typical tasks\", post 119435 on habr.com, author not named in the text; GeForce GTX 460 [not in the text: 2011]"
            }
            Paper::Transposing => {
                "Kalgin and Baldin, \"Transposing a matrix\", year not given in the text; GeForce 8800, a Quadro with 192 cores, Core i7 [not in the text: part of the CUDA series of Linux Format, Russian edition]"
            }
            Paper::Sum => {
                "\"GPGPU optimisation by the example of a sum\" (DirectCompute), author and year not given in the text; G80 [not in the text: its steps are those of Mark Harris, \"Optimizing parallel reduction in CUDA\", 2007]"
            }
            Paper::Lecture => {
                "\"Methods of effective organisation of parallel computing on GPUs\", lecture notes, ticket 40, author and year not given in the text; Fermi"
            }
            Paper::Own => "gpuimg itself: no paper measured it",
        }
    }
}

/// A system, as a paper describes it.
#[derive(Debug)]
pub struct Topic {
    /// The key by which rows refer to it.
    pub key: &'static str,
    /// The paper that describes it.
    pub paper: Paper,
    /// The work that it does: the part of the paper.
    pub system: &'static str,
    /// A drawing of which thread accesses which element.
    pub picture: &'static str,
    /// The lesson that the paper draws.
    pub lesson: &'static str,
}

impl Topic {
    /// The systems in the text of a paper, separated by empty lines: a line with the key and the
    /// system, the picture, and a line with the lesson.
    fn parse(paper: Paper, text: &'static str) -> impl Iterator<Item = Topic> {
        text.trim_end().split("\n\n").filter_map(move |block| {
            let (key, block) = block.split_once(": ")?;
            let (system, block) = block.split_once('\n')?;
            let (picture, lesson) = block.rsplit_once('\n')?;
            Some(Topic {
                key,
                paper,
                system,
                picture,
                lesson,
            })
        })
    }
}

static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| {
    [
        (
            Paper::TypicalTasks,
            include_str!("papers/typical_tasks.txt"),
        ),
        (Paper::Transposing, include_str!("papers/transposing.txt")),
        (Paper::Sum, include_str!("papers/reduction.txt")),
        (Paper::Lecture, include_str!("papers/lecture.txt")),
        (Paper::Own, include_str!("papers/own.txt")),
    ]
    .into_iter()
    .flat_map(|(paper, text)| Topic::parse(paper, text))
    .collect()
});

/// All systems: the papers', then the program's own.
pub fn topics() -> impl Iterator<Item = &'static Topic> {
    TOPICS.iter()
}

/// The system with this key.
pub fn topic(key: &str) -> &'static Topic {
    topics()
        .find(|topic| topic.key == key)
        .unwrap_or_else(|| unreachable!("the tables name only systems of papers/*.txt: {key}"))
}
