#!/bin/bash
# One range for a whole data set, on as many tasks as you like: count, merge, normalize.
#
#   samples/slurm/submit.sh IN_DIR OUT_DIR [TASKS]             8 tasks, unless told
#   samples/slurm/submit.sh IN_DIR OUT_DIR TASKS RUN ARRAY     counts tasks ARRAY (2, or 2,5) of that run again
#
# Prints the number of the last job; the first one's is the run's. IN_DIR and OUT_DIR must be seen by all
# nodes, and gpuimg be found in PATH, or named by GPUIMG. For options of your cluster (partition, account,
# --gres=gpu:1), set SBATCH_PARTITION and the like: sbatch reads them.
#
# A run keeps what it knows in OUT_DIR/.range/RUN: a histogram of each part, and of all. Logs are in
# OUT_DIR/.range. What may happen:
# * An image cannot be read: its tasks name it and end with 1, as FAILED; the rest of the set is done.
# * A counting task is lost in another way: the merge names the missing part and fails, and the tasks that
#   wait for it are cancelled. Run the second form.
# * A node fails, or a job is requeued: the task runs again, and what is done and unchanged is skipped.
# * Only a task of the last job is lost: run the second form, or that task alone, as in
#     GPUIMG=gpuimg INPUT=/in OUTPUT=/out TASKS=8 RUN=17 sbatch --array=2 samples/slurm/normalize.sbatch
set -euo pipefail
usage="usage: $0 IN_DIR OUT_DIR [TASKS [RUN ARRAY]]"
[[ $# == [235] ]] || { echo "$usage" >&2; exit 2; }

# A path may end in a newline, which $(…) would take away.
IFS= read -rd '' INPUT < <(realpath -ez -- "$1")
IFS= read -rd '' OUTPUT < <(realpath -mz -- "$2")
TASKS=${3:-8} RUN=${4:-} GPUIMG=${GPUIMG:-gpuimg}
[[ $GPUIMG != */* ]] || GPUIMG=$(realpath -e -- "$GPUIMG")
export INPUT OUTPUT TASKS RUN GPUIMG
here=$(dirname "$(realpath "$0")")

# In a log's name sbatch replaces %x by the job's and so on; %% is a %, and after a \ nothing is replaced.
[[ $OUTPUT != *\\* ]] || { echo "$0: sbatch cannot log in a folder with a backslash: $OUTPUT" >&2; exit 2; }
logs=${OUTPUT//%/%%}/.range
mkdir -p "$OUTPUT/.range"

job() { # LOG OPTION… SCRIPT
    local id
    id=$(sbatch --parsable --export=ALL --requeue --open-mode=append --output="$logs/$1" "${@:2}") || return
    echo "${id%%;*}" # a cluster's name may follow
}
count=$(job %x-%A_%a.log --job-name=count --array="${5:-1-$TASKS}" "$here/histogram.sbatch")
RUN=${RUN:-$count}
# After any end: a task that met a bad image has counted the others. Whether all parts are there, merge sees.
merge=$(job %x-%j.log --job-name=merge --dependency="afterany:$count" "$here/merge.sbatch")
job %x-%A_%a.log --job-name=normalize --array="1-$TASKS" \
    --dependency="afterok:$merge" --kill-on-invalid-dep=yes "$here/normalize.sbatch"
