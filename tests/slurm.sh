#!/bin/bash
# The job array of samples/slurm on a real Slurm: two nodes on this machine, three tasks; the results must be
# those of `normalize --across` on one machine. Needs root and Debian's slurm-wlm; installs it, or says loudly
# that it could not.
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
    pkill -F "$work/ctld.pid" 2> /dev/null || true
    for node in n1 n2; do pkill -F "$work/$node.pid" 2> /dev/null || true; done
    [[ -z ${munge:-} ]] || kill "$munge" 2> /dev/null || true
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
AuthInfo=socket=$work/munge/socket
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

# A series of 30 images of different brightness.
mkdir "$work/in"
for i in $(seq 30); do
    { printf 'P5\n64 48\n65535\n'; head -c 6144 /dev/urandom | tr '\000-\377' "\\000-\\$(printf %o $((100 + 5 * i)))"; } \
        > "$work/in/$i.pgm"
done
"$gpuimg" normalize -q --across "$work/in" "$work/one"
last=$(GPUIMG=$gpuimg samples/slurm/submit.sh "$work/in" "$work/many" 3)
for _ in $(seq 120); do
    [[ -z $(squeue -h 2> /dev/null) ]] && break
    sleep 1
done
diff -r -x '.*' "$work/one" "$work/many" || { cat "$work"/many/.range/*.log; scontrol show job "$last" || true; exit 1; }
echo "Slurm: 3 tasks on 2 nodes, $(find "$work/many" -name '*.pgm' | wc -l) files, the same bytes as one machine's"
