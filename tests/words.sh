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
exit $found
