#!/usr/bin/env bash
# Runs a command as a job step of a real Slurm cluster of four nodes, all on this host:
#
#   tests/cluster/slurm.sh [-n TASKS] COMMAND...     default: 4 tasks of dist_rank_environment_main
#   tests/cluster/slurm.sh --script FILE [OPTIONS OF SBATCH] [-- ARGUMENTS OF FILE]
#                                                    a batch script: waits, and prints its output
#
# Needs root, and installs slurm-wlm and munge if they are missing. The nodes n1 to n4 are
# configured with 4 cores and 1000 MB each. Programs of the build are found by name. All daemons run
# in namespaces of their own (processes, mounts): when this script ends, for whatever reason, the
# kernel ends them, and nothing outside changes: not /etc, not a running munge or Slurm.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
  missing=()
  for package in slurm-wlm munge; do dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package"); done
  if [ ${#missing[@]} -gt 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
    "$0" --inside "$folder" "$@"
  exit
fi

readonly folder=$2
shift 2
release=$(cd "$(dirname "$0")/../.." && pwd)/build/release
export PATH=$release/bin:$PATH
tasks=4 options=() script=
case "${1:-}" in
  -n) tasks=$2; shift 2 ;;
  --script)
    script=$2
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
    [ $# -eq 0 ] || shift
    ;;
esac
[ $# -gt 0 ] || [ -n "$script" ] || set -- "$release/tests/dist_rank_environment_main"

chmod 755 "$folder"
mkdir -p "$folder"/{munge,mrun,state,log,spool.n1,spool.n2,spool.n3,spool.n4}
# A private key and munge, and host names that only we see.
dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
chown -R munge:munge "$folder/munge" "$folder/mrun"
chmod 700 "$folder/munge"
chmod 600 "$folder/munge/key"
cp /etc/hosts "$folder/hosts"
echo "127.0.0.1 n1 n2 n3 n4" >>"$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
su -s /bin/sh munge -c "munged --socket=$folder/mrun/s --key-file=$folder/munge/key \
  --pid-file=$folder/munge/pid --log-file=$folder/munge/log --seed-file=$folder/munge/seed"

cat >"$folder/slurm.conf" <<EOF
ClusterName=ringtail
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
AuthInfo=socket=$folder/mrun/s
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/ctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/log/ctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=10
KillWait=5
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=[26901-26904] CPUs=4 RealMemory=1000
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
EOF
export SLURM_CONF=$folder/slurm.conf
slurmctld -c
for node in n1 n2 n3 n4; do slurmd -N "$node"; done
for ((try = 0; try < 300; ++try)); do  # half a minute for the nodes to come up
  [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 4 ] && break
  sleep 0.1
done

if [ -n "$script" ]; then
  status=0
  # A job that was requeued waits for two minutes; here it starts again at once.
  (while sleep 1; do
    for job in $(squeue --noheader --states=PD --format=%i); do
      scontrol update JobId="$job" StartTime=now
    done
  done) 2>/dev/null &
  touch "$folder/output"
  sbatch --quiet --wait --output="$folder/output" "${options[@]}" "$script" "$@" &
  job=$!
  tail --lines=+1 --follow=name --pid=$job "$folder/output" 2>/dev/null || true
  wait $job || status=$?
  [ $status -eq 0 ] || squeue --states=all --noheader --format="slurm.sh: job %i is %T (%r)" >&2
  exit $status
fi
exec timeout 600 srun --kill-on-bad-exit=1 --nodes=$((tasks < 4 ? tasks : 4)) --ntasks="$tasks" "$@"
