#!/bin/bash
# One range for a whole data set, on as many tasks as you like: count, merge, normalize.
#
#   samples/slurm/submit.sh IN_DIR OUT_DIR [TASKS]
#
# Three jobs, each after the one before has succeeded. IN_DIR and OUT_DIR must be seen by all nodes, and
# gpuimg be found in PATH, or named by GPUIMG. For options of your cluster (partition, account, --gres=gpu:1),
# set SBATCH_PARTITION and the like: sbatch reads them. A job that was stopped is submitted again as it is:
# what is done and unchanged is skipped.
set -euo pipefail
input=$(realpath "$1") output=$(realpath -m "$2") tasks=${3:-8}
here=$(realpath "$(dirname "$0")")
mkdir -p "$output/.range"
export GPUIMG=${GPUIMG:-gpuimg} INPUT=$input OUTPUT=$output

job() { sbatch --parsable --export=ALL --output="$output/.range/%x-%a.log" "$@"; }
count=$(job --job-name=count --array="1-$tasks" "$here/histogram.sbatch")
merge=$(job --job-name=merge --dependency="afterok:$count" "$here/merge.sbatch")
last=$(job --job-name=normalize --array="1-$tasks" --dependency="afterok:$merge" "$here/normalize.sbatch")
echo "$last"
