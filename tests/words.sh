#!/bin/bash
# Private words that have left the source must not come back: the field has its own (CONTRIBUTING.md). A line a word: what is not to be
# found in src, as a whole identifier or word, and what to say instead.
set -euo pipefail
cd "$(dirname "$0")/.."
found=0
while IFS='|' read -r pattern instead; do
    [[ -n $pattern ]] || continue
    if grep -rnPw --include='*.rs' -- "$pattern" src; then
        echo "  ^ say: $instead" >&2
        found=1
    fi
done << 'WORDS'
cards?|GPU, device
Way|page processor
Station|executor
Told|Diagnostics
Remarks|Diagnostics
Story|the transform applied
Retold|update of a description
retell|update a description
Meaning|SampleTypes
Turn|PixelMap, Symmetry
leave_aside|skip reduced-resolution pages
is_aside|is a reduced-resolution page
Room|MemoryBudget
Shelf|BufferPool
restock|release
Crew|workers
seats?|worker index
Fleet|GpuSet
Turnstile|OrderedWriter
Leaving|guard
Salvage|ErrorPolicy
Ahead|speculative decode
illusions?|false starts
hungry|needs input
Fate|FileOutcome
Voice|verbosity
aloud|verbosity
hush|verbosity
complain|print_error
png_promise|match estimate
Lab(?! colours)|BenchContext
WORDS

# Words of prose that hid a plain noun or verb: not to be found in comments of the sources and the kernels.
while IFS='|' read -r pattern instead; do
    [[ -n $pattern ]] || continue
    if grep -rnP --include='*.rs' --include='*.cu' --include='*.cuh' -- "//.*\b($pattern)\b" src kernels; then
        echo "  ^ say: $instead" >&2
        found=1
    fi
done << 'PROSE'
[Ii]s told|printed, recorded, reported; or name the caller
[Aa]re told|printed, recorded, reported; or name the caller
[Tt]old of|called with, named in
[Tt]ells of|describes
[Ww]hat is told|name the sentences or fields
[Ww]hat is said|name the text
[Oo]n its way|while it is processed
[Oo]n their way|in progress
[Pp]ixel's way|path of a pixel
[Tt]aken aside|copied to a buffer
[Uu]npacked aside|unpacked into a buffer
[Aa]t rest|stored
[Mm]anned|used, assigned
[Aa]re welcome|are accepted
[Hh]ouses?|module, layout
[Hh]as its station|runs
[Gg]one on with|resumed
PROSE

# Phrases that newcomers could not read: not to be found in the documents, nor in comments of the sources and tests. UNREAD is generated.
UNREAD='^src/gpu/launch\.rs'
while read -r line; do
    pattern=${line%% => *}
    instead=${line#* => }
    hits=$(
        git ls-files 'src/*.rs' 'tests/*.rs' | grep -vP "$UNREAD" | xargs grep -nP -- "//.*\b($pattern)\b"
        git ls-files 'docs/*.md' README.md CONTRIBUTING.md | grep -vP "$UNREAD" | xargs grep -nP -- "\b($pattern)\b"
    ) || true
    if [[ -n $hits ]]; then
        echo "$hits"
        echo "  ^ say: $instead" >&2
        found=1
    fi
done << 'PHRASES'
[Mm]ended => fixed, repaired
(?<!`)[Bb]ehind => after
[Pp]ass(ed|es) over => skipped
[Gg]one? on with => resumed, continued
[Gg]oes on => continues
[Ii]s told of => is reported
[Tt]old by => detected from, recognized by
[Ll]ooked at => inspected, checked
([Ii]s|[Aa]re|[Ww]as|[Ww]ere) taken for => is mistaken for, is read as
[Ss]tretche[sd] => scales, scaled
[Ii]t is no (interface|image|file|format) => it is not a …
([Bb]its|[Bb]ytes|[Ss]amples) a (sample|pixel|second) => bits per sample
PHRASES

# The same in messages: a message names the problem, the cause, and what to do.
while read -r line; do
    pattern=${line%% => *}
    instead=${line#* => }
    if git ls-files 'src/*.rs' | grep -vP "$UNREAD" | xargs grep -nP -- "\"[^\"]*($pattern)[^\"]*\""; then
        echo "  ^ say: $instead" >&2
        found=1
    fi
done << 'MESSAGES'
none of them => expected X, got Y
takes no further word => unexpected argument
exists already => already exists
stands behind => goes after
passed over => skipped
do not go together => cannot be combined
is the nearest => did you mean …?
, and these are => but these are
leave (it|one of them|--\w+) out => remove …
MESSAGES
exit $found
