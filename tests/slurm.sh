#!/bin/bash
# The job arrays of samples/slurm on a real Slurm: two nodes on this machine. The results must be those of
# `normalize --across` on one machine, also with a bad image, a lost task, a requeued one, another number of
# tasks, and a path with all that a path may have; and no job may be left waiting. Needs root and Debian's
# slurm-wlm; installs it, or says loudly that it could not.
#
#   tests/slurm.sh [GPUIMG]
set -euo pipefail
cd "$(dirname "$0")/.."
gpuimg=$(realpath "${1:-target/release/gpuimg}")

skip() { echo "SKIPPED the job array on Slurm: $*" >&2; exit 0; }
[[ $(id -u) == 0 ]] || skip "it needs root to start munge and Slurm"
if ! command -v slurmctld > /dev/null; then
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq slurm-wlm munge) > /dev/null 2>&1 ||
        skip "slurm-wlm cannot be installed"
fi

work=$(mktemp -d)
stop() {
    local pids
    pids=$(cat "$work"/{ctld,n1,n2}.pid 2> /dev/null) || true
    # shellcheck disable=SC2086 # One word for each.
    kill $pids ${munge:-} 2> /dev/null || true
    # They write their state as they end, into the folder that is to go.
    for pid in $pids ${munge:-}; do timeout 30 tail --pid="$pid" -f /dev/null || kill -9 "$pid" || true; done
    rm -rf "$work"
}
trap stop EXIT

# Munge, by which Slurm's parts know each other: a key and a socket of our own.
mkdir -p "$work/munge" "$work/state" "$work/n1" "$work/n2"
chmod 711 "$work"
chmod 755 "$work/munge"
head -c 1024 /dev/urandom > "$work/munge/key"
chmod 600 "$work/munge/key"
munged --force --foreground --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" > /dev/null 2>&1 &
munge=$!

cat > "$work/slurm.conf" << CONF
ClusterName=test
SlurmctldHost=$(hostname -s)
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
SlurmctldPidFile=$work/ctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/ctld.log
SlurmdLogFile=$work/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
ReturnToService=2
NodeName=n1 NodeHostname=$(hostname -s) Port=16818 CPUs=1
NodeName=n2 NodeHostname=$(hostname -s) Port=16819 CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
sleep 1
slurmctld -i && slurmd -N n1 && slurmd -N n2 || skip "Slurm does not start ($(tail -1 "$work"/ctld.log))"
for _ in $(seq 30); do
    [[ $(sinfo -h -o %t 2> /dev/null) == idle ]] && break
    sleep 1
done
[[ $(sinfo -h -o %t) == idle ]] || skip "Slurm's nodes do not come up"

# A series of `count` images in `folder`, of different brightness.
series() { # folder count
    mkdir -p "$1"
    for i in $(seq "$2"); do
        { printf 'P5\n64 48\n65535\n'; head -c 6144 /dev/urandom | tr '\000-\377' "\\000-\\$(printf %o $((100 + 5 * i)))"; } \
            > "$1/$i.pgm"
    done
}

# Ends the test, with what Slurm and the jobs say.
wrong() {
    echo "WRONG: $case: $*" >&2
    squeue -l >&2
    scontrol show job -o 2> /dev/null | grep -o 'JobId=[0-9]*\|JobName=[a-z]*\|JobState=[A-Z]*\|Reason=[A-Za-z]*\|ExitCode=[0-9:]*' |
        paste - - - - - >&2
    find "$work"/out* -name '*.log' -exec tail -n 5 {} + >&2
    exit 1
}

# Waits until no job is left; what waits for ever is wrong.
finish() {
    for _ in $(seq 450); do
        [[ -n $(squeue -h 2> /dev/null) ]] || return 0
        sleep 0.2
    done
    wrong "jobs are left waiting"
}

# How the tasks of a job ended: their states and exit statuses, sorted.
ends() { scontrol show job -o "$1" | sed 's/.*JobState=\([A-Z]*\).*ExitCode=\([0-9]*\):.*/\1 \2/' | sort | tr '\n' ' '; }

# What was made must be what one machine makes.
same() { diff -r -x '.*' "$1" "$2" > "$work/diff" || wrong "other results than one machine's: $(head -3 "$work/diff")"; }

submit() { GPUIMG=${GPUIMG:-$gpuimg} samples/slurm/submit.sh "$@" || wrong "not submitted"; }

# A gpuimg that does something else for task 2 first, if $work/once-VERB has it.
cat > "$work/gpuimg" << PROGRAM
#!/bin/bash
# In a requeued task's second life that is not there any more.
if [[ \$SLURM_ARRAY_TASK_ID == 2 && -e $work/once-\$1 ]]; then
    mv "$work/once-\$1" "$work/now-\$1"
    . "$work/now-\$1"
fi
exec "$gpuimg" "\$@"
PROGRAM
chmod +x "$work/gpuimg"
run_of() { ls -t "$1/.range" | grep -x '[0-9]*' | head -1; }

case="three tasks"
series "$work/in" 30
"$gpuimg" normalize -q --across "$work/in" "$work/one"
last=$(submit "$work/in" "$work/out" 3)
finish
same "$work/one" "$work/out"
[[ $(ends "$last") == "COMPLETED 0 COMPLETED 0 COMPLETED 0 " ]] || wrong "$(ends "$last")"
echo "Slurm: 3 tasks on 2 nodes, $(find "$work/out" -name '*.pgm' | wc -l) files, the same bytes as one machine's"

case="one task again (--array=2)"
run=$(run_of "$work/out")
second=$("$gpuimg" sum -q "$work/in" --shard 2/3 --json | sed 's/.*"file":"[^"]*\/\([0-9]*\.pgm\)".*/\1/' | sort)
rm "$work"/out/*.pgm
GPUIMG=$gpuimg INPUT=$work/in OUTPUT=$work/out TASKS=3 RUN=$run \
    sbatch --parsable --array=2 --output=/dev/null samples/slurm/normalize.sbatch > /dev/null
finish
[[ -n $second && $(find "$work/out" -name '*.pgm' -printf '%f\n' | sort) == "$second" ]] ||
    wrong "task 2 of 3 made other files than its own $(wc -w <<< "$second")"
echo "Slurm: one task submitted by itself does its own part"
rm -r "$work/out"

case="another number of tasks, of another set"
submit "$work/in" "$work/out" 3 > /dev/null
finish
rm -r "$work"/{in,out}/{1,30}.pgm "$work/one"
"$gpuimg" normalize -q --across "$work/in" "$work/one"
submit "$work/in" "$work/out" 2 > /dev/null
finish
same "$work/one" "$work/out"
echo "Slurm: 3 tasks, then 2 for a smaller set in the same folder: nothing of the first range is left"
rm -r "$work/out"

case="a bad image"
printf 'P5\n64 48\n65535\ntoo short' > "$work/in/bad.pgm"
last=$(submit "$work/in" "$work/out" 3)
finish
same "$work/one" "$work/out"
[[ $(ends "$last") == "COMPLETED 0 COMPLETED 0 FAILED 1 " ]] || wrong "$(ends "$last")"
grep -q 'bad.pgm' "$work"/out/.range/count-*.log && grep -q 'bad.pgm' "$work"/out/.range/normalize-"$last"_*.log ||
    wrong "no log names it"
grep -q 'does not include 1 image' "$work"/out/.range/merge-*.log || wrong "the merge does not tell"
echo "Slurm: with a bad image the others are done, and one task ends with 1"
rm -r "$work/out" "$work/in/bad.pgm"

case="a lost task"
echo 'kill -9 $$' > "$work/once-histogram"
last=$(GPUIMG=$work/gpuimg submit "$work/in" "$work/out" 3)
finish
[[ $(ends "$last") == *CANCELLED* && ! $(ends "$last") =~ COMPLETED ]] || wrong "$(ends "$last")"
grep -q 'part 2 of 3 is missing' "$work"/out/.range/merge-*.log || wrong "the merge does not name it"
submit "$work/in" "$work/out" 3 "$(run_of "$work/out")" 2 > /dev/null
finish
same "$work/one" "$work/out"
echo "Slurm: a lost task is named, nothing waits for it, and counted again by itself"
rm -r "$work/out"

case="requeued tasks"
# Both have done their work, but Slurm does not know.
for verb in histogram normalize; do
    echo "echo the first time; \"$gpuimg\" \"\$@\"; touch \"$work/wait-$verb\"; sleep 100" > "$work/once-$verb"
done
last=$(GPUIMG=$work/gpuimg submit "$work/in" "$work/out" 3)
for verb in histogram normalize; do
    for _ in $(seq 200); do [[ ! -e $work/wait-$verb ]] || break; sleep 0.2; done
    [[ -e $work/wait-$verb ]] || wrong "$verb does not begin"
    [[ $verb == normalize ]] && job=$last || job=$(run_of "$work/out")
    scontrol requeue "${job}_2" || wrong "$verb is not requeued"
done
finish
same "$work/one" "$work/out"
[[ $(ends "$last") == "COMPLETED 0 COMPLETED 0 COMPLETED 0 " ]] || wrong "$(ends "$last")"
grep -q 'the first time' "$work/out/.range/normalize-${last}_2.log" || wrong "the first life's log is lost"
echo "Slurm: a counting and a normalizing task requeued"
rm -r "$work/out"

case="a job that Slurm refuses"
! GPUIMG=$gpuimg samples/slurm/submit.sh "$work/in" "$work/out" 1-x 2> "$work/told" || wrong "it is taken"
[[ $(grep -c failed "$work/told") == 1 ]] || wrong "the jobs after it are submitted too: $(cat "$work/told")"
rm -r "$work/out"

case="one Zarr store"
store="convert -q $work/stack.tif $work/out.zarr --zarr-chunk 16"
"$gpuimg" convert -q --stack "$work/in" "$work/stack.tif"
"$gpuimg" convert -q "$work/stack.tif" "$work/one.zarr" --zarr-chunk 16
# Task 2 is killed while it writes its third file.
echo "GPUIMG_FAULT=write:/c/:3=stop $gpuimg \"\$@\" & sleep 2; kill -9 \$!; exit 1" > "$work/once-convert"
last=$(sbatch --parsable --array=1-4 --output=/dev/null --wrap "$work/gpuimg $store --shard auto")
finish
[[ $(ends "$last") == "COMPLETED 0 COMPLETED 0 COMPLETED 0 FAILED 1 " && ! -e $work/out.zarr ]] || wrong "$(ends "$last")"
last=$(sbatch --parsable --output=/dev/null --wrap "$gpuimg $store --shard 2/4")
finish
[[ $(ends "$last") == "COMPLETED 0 " && ! -e $work/out.zarr.partial ]] || wrong "$(ends "$last")"
diff -r "$work/one.zarr" "$work/out.zarr" > "$work/diff" || wrong "another store than one machine's: $(head -3 "$work/diff")"
echo "Slurm: four tasks write one Zarr store, one of them killed and submitted again; the same bytes as one machine's"

case="a strange path"
strange=$work/$'out %A 100%j\n "$x" %%\n'
mv "$work/in" "$strange in"
submit "$strange in" "$strange" 2 > /dev/null
finish
same "$work/one" "$strange"
[[ $(ls "$strange/.range" | grep -c '\.log$') == 5 ]] || wrong "logs are lost: $(ls "$work"/*/.range)"
[[ $(GPUIMG=$gpuimg samples/slurm/submit.sh "$strange in" "$work/a\\b" 2>&1) == *"with a backslash"* && ! -e $work/a\\b ]] ||
    wrong "a path in which sbatch cannot log is taken"
echo "Slurm: a path with %, spaces, quotes and newlines"
