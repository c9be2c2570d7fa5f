#!/usr/bin/env bash
# Spin on handoff.pml and the explorer of the machines that serve, in turns on
# one machine, so that whatever else it does weighs on both. Prints what each
# round took, and the median of states a CPU second.
#
#   beside.sh [CONFIG SETUP [ROUNDS]]    CONFIG of run.sh, SETUP of kvcanary verify model; wide, three-one-sided, 3
#
# A CPU second is one of any processor: the explorer runs on one thread here, as
# Spin does. How alike the two configurations are is in README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

config=${1:-wide} setup=${2:-three-one-sided} rounds=${3:-3}
fail() { printf 'beside.sh: %s\n' "$*" >&2; exit 1; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || fail "$rounds is not a number of rounds"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
exe=${KVCANARY:-$dir/kvcanary} # the program, if it has been built
[ -n "${KVCANARY:-}" ] || go build -o "$exe" ../cmd/kvcanary

# explore: one exploration in the form of run.sh --rate.
explore() {
  local cpu states
  cpu=$(TIMEFORMAT='%U %S' && { time "$exe" verify model --config "$setup" --workers 1 --format json >"$dir/json"; } 2>&1) ||
    fail "$setup: $cpu"
  states=$(awk -F'[:,]' '/"states":/ {n = $2} END {print n + 0}' "$dir/json")
  awk -v name="$setup" -v n="$states" -v cpu="$cpu" \
    'BEGIN {split(cpu, t, " "); s = t[1] + t[2]; if (s <= 0) s = 0.001; printf "%s\tmachines\t%d\t%.2f\t%d\n", name, n, s, n / s}'
}

printf 'config\tsearch\tstates\tCPU seconds\tstates a CPU second\n'
for ((i = 1; i <= rounds; i++)); do
  ./run.sh --rate "$config" | tail -n +2
  explore
done | tee "$dir/rounds"

for search in exhaustive bitstate machines; do
  awk -F'\t' -v s="$search" '$2 == s {print $5}' "$dir/rounds" | sort -n |
    awk -v s="$search" '{v[NR] = $1} END {if (!NR) exit 1; printf "median\t%s\t\t\t%d\n", s, NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}' ||
    fail "no round of $search"
done
