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
exit $found
