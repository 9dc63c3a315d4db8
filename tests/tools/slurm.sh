# shellcheck shell=bash
# A Slurm cluster of this machine alone: munged, slurmctld and slurmd in a folder, on ports that are free, without
# systemd, as the user who runs it. Whoever calls start_slurm calls stop_slurm at the end.
slurm=()

free_ports() { # COUNT
  /usr/bin/python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))
PYTHON
}

write_slurm_conf() {
  local host control daemon
  host=$(hostname -s)
  read -r control daemon < <(free_ports 2)
  cat >"$slurm_folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/munge.socket
SlurmctldPort=$control
SlurmdPort=$daemon
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd.pid
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=2
PartitionName=test Nodes=ALL Default=YES State=UP
CONF
}

# In the foreground, so that its process id is known.
daemon() { # COMMAND...
  "$@" >"$slurm_folder/$1.out" 2>&1 &
  slurm+=($!)
}

start_slurm() {
  slurm_folder=$(mktemp -d /tmp/nonlocal-slurm.XXXXXX)
  mkdir "$slurm_folder"/{state,spool}
  chmod 755 "$slurm_folder"
  head -c 128 /dev/urandom >"$slurm_folder/munge.key"
  chmod 600 "$slurm_folder/munge.key"
  write_slurm_conf
  export SLURM_CONF=$slurm_folder/slurm.conf
  local munge=$slurm_folder/munge
  daemon munged --foreground --key-file="$munge.key" --socket="$munge.socket" --pid-file="$munge.pid" \
    --log-file="$munge.log" --seed-file="$munge.seed"
  await 10 test -S "$munge.socket"
  daemon slurmctld -D -i
  daemon slurmd -D
  await 30 node_is_idle || { cat "$slurm_folder"/*.out >&2 && return 1; }
}
node_is_idle() { [[ $(sinfo -h -o %T 2>/dev/null) == idle ]]; }

await() { # SECONDS COMMAND...: until it succeeds
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

# Jobs first: they are in sessions of their own.
stop_slurm() {
  [ ${#slurm[@]} -gt 0 ] || return 0
  scancel --full --signal=KILL --user "$(id -un)" >/dev/null 2>&1 || true
  scancel --user "$(id -un)" >/dev/null 2>&1 || true
  await 5 no_job || true
  kill "${slurm[@]}" 2>/dev/null || true
  wait "${slurm[@]}" 2>/dev/null || true
  rm -rf "$slurm_folder"
}
no_job() { [ -z "$(squeue -h 2>/dev/null)" ]; }
