//! Commands that a newcomer can copy, for the end of the help of each verb that is no operation.
//! Lines have at most 80 columns.

pub const ALL: &str = "Examples:\n\
\x20 gpuimg normalize in.png out.png         scale minimum…maximum to full depth\n\
\x20 gpuimg normalize in/ out/               every image below in/, same folders\n\
\x20 gpuimg rotate 90 in.tif out.tif         a quarter turn clockwise\n\
\x20 gpuimg sum --all in.tif                 sum, minimum, maximum and mean\n\
See gpuimg VERB --help for options and more examples.";

pub const INFO: &str = "Examples:\n\
\x20 gpuimg info scan.tif                            one line\n\
\x20 gpuimg info in/ --json                          a JSON object for each image\n\
\x20 gpuimg info --range dark.fits                   with its smallest and largest value\n\
\x20 gpuimg info in/ --html sheet.html               a page to look through, with pictures";

pub const MERGE: &str = "Examples:\n\
\x20 gpuimg merge parts -o all.hist                  every .hist file in a folder\n\
\x20 gpuimg merge 1.hist 2.hist 3.hist -o all.hist   or name each file\n\
\x20 gpuimg merge parts -o mean.tif                  .partial files, into one image";

pub const RUN: &str = "Examples:\n\
\x20 gpuimg run 'calibrate --dark d.tif + normalize + rotate 90' in/ out/\n\
\x20 gpuimg run 'rotate 90 + flip horizontal' in.tif out.tif\n\
\x20 gpuimg run 'normalize --across + rotate 180' in/ out/ --format png\n\
\x20 gpuimg run 'project mean + normalize + rotate 90' in/ mean.png\n\
File options like --overwrite go after the verbs. --auto-orient and --depth 16\n\
apply before the first verb, --depth 8 after the last.";

pub const PROJECT: &str = "Examples:\n\
\x20 gpuimg project mean darks/ dark.tif             the mean of all images\n\
\x20 gpuimg project max stack.tif brightest.tif      the maximum of all pages\n\
\x20 gpuimg project sum a.tif b.tif c.tif sum.tif    error if a sum exceeds 16 bits\n\
\x20 gpuimg project sum in/ sum.tif --scale          scale to 16 bits instead\n\
\x20 gpuimg project mean in/ p/3.partial --partial --shard 3/16";

pub const COMBINE: &str = "Examples:\n\
\x20 gpuimg combine r.tif g.tif b.tif rgb.tif        red, green and blue\n\
\x20 gpuimg combine r.tif g.tif b.tif a.tif rgba.png  with alpha\n\
\x20 gpuimg combine cells.tif rgb.tif --colours C1=green,C2=#ff00ff\n\
A stack's channels are those of its axes; Z and T become pages.";

pub const CALIBRATE: &str = "Examples:\n\
\x20 gpuimg calibrate --dark dark.tif --flat flat.tif in/ out/\n\
\x20 gpuimg calibrate --dark darks/ --flat flats/ in/ out/   average the frames\n\
\x20 gpuimg calibrate --dark dark.tif in.tif out.tif --offset 100\n\
\x20 gpuimg calibrate --dark dark.tif --flat flat.tif --log --to f32 in/ out/\n\
\x20 gpuimg calibrate --dark dark.tif --flat-start f1.tif --flat-end f2.tif in/ out/";

pub const PROVE: &str = "Examples:\n\
\x20 gpuimg prove r.jsonl                            status 0 if every output is proven\n\
\x20 gpuimg prove r.jsonl --device cpu -v            on the CPU, with a line for each output\n\
Outputs of this version are compared by their bytes, those of others by their\n\
samples. Files are written only to a temporary folder (TMPDIR).";

pub const VERIFY: &str = "Examples:\n\
\x20 gpuimg verify a.png b.tif                       status 0 if equal, 1 if not\n\
\x20 gpuimg verify --devices in.png                  compare CPU and GPU results";

pub const BENCH: &str = "Examples:\n\
\x20 gpuimg bench                                    every table\n\
\x20 gpuimg bench transpose reduce --html bench.html two tables, and a web page\n\
\x20 gpuimg bench --json > now.json                  for a later --compare now.json\n\
\x20 gpuimg bench --from now.json --html bench.html  a page from a saved run";

pub const DOCTOR: &str = "Examples:\n\
\x20 gpuimg doctor                                   CPU, memory, GPU and link\n\
\x20 gpuimg doctor --device gpu:1                    the second GPU, or status 3\n\
\x20 gpuimg doctor --json                            one JSON object";

pub const COMPLETIONS: &str = "Examples:\n\
\x20 gpuimg completions bash > /etc/bash_completion.d/gpuimg\n\
\x20 gpuimg completions zsh > ~/.zfunc/_gpuimg";

pub const MAN: &str = "Examples:\n\
\x20 gpuimg man ~/.local/share/man/man1              then type: man gpuimg";
