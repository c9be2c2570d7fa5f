#!/usr/bin/env bash
# Checks handoff.pml with Spin, one set of switches after the other, and prints
# a table: configuration, switches, invariant, verdict, states, seconds. Fails if
# a verdict differs from expected.tsv. README.md says how to read all of it.
#
#   run.sh                                 the short form
#   run.sh --full                          everything, and I5 on the whole configuration
#   run.sh --table                         what defence does what to which fault, from expected.tsv
#   run.sh --trace CONFIG SWITCHES Ik      a shortest run that breaks an invariant, as text
#   run.sh --rate                          Spin's states a second
#
# --jobs N sets how many sets are checked at once, the number of processors by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

here=$PWD
form=short
jobs=$(nproc)

# The configurations. Lengths are tokens; where nothing is said a page is one token.
declare -A config=(
  [table]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [long]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1 -DPLIMIT=1"
  [incident]="-DN=2 -DONESIDED -DDPAGES=2 -DPPAGES=2 -DPAGE=2 -DLEN0=3 -DLEN1=4 -DPLIMIT=3 -DABORTS=0"
  [partial]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DPAGE=2 -DLEN0=1 -DLEN1=3 -DLEN2=2 -DPLIMIT=2"
  [inpage]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DPAGE=2 -DLEN0=1 -DLEN1=2 -DLEN2=1 -DPLIMIT=1"
  [asked]="-DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [asked3]="-DDPAGES=3 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [split]="-DONESIDED -DSPLIT_READ -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [torn]="-DONESIDED -DTORN -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [taglast]="-DONESIDED -DTORN -DTAG_LAST -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1"
  [pair]="-DN=2 -DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=2 -DLEN1=1"
  [lossy]="-DN=2 -DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=2 -DLEN1=1 -DLOSSES=1 -DDUPS=1"
  [deaths]="-DN=2 -DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=2 -DLEN1=1 -DCRASHES=1"
  [rough]="-DN=2 -DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=1 -DCRASHES=2 -DLOSSES=1"
  [deaths3]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1 -DABORTS=0 -DCRASHES=1"
  [wide]="-DONESIDED -DDPAGES=3 -DPPAGES=3 -DLEN0=2 -DLEN1=1 -DLEN2=2"
  [lossy3]="-DONESIDED -DDPAGES=3 -DPPAGES=3 -DLEN0=2 -DLEN1=1 -DLEN2=2 -DABORTS=0 -DLOSSES=1"
  [deathsmore]="-DONESIDED -DDPAGES=2 -DPPAGES=2 -DLEN0=1 -DLEN1=2 -DLEN2=1 -DCRASHES=1"
)

fail() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }

# macros SWITCHES: the macros of a set such as late_write+tags:by_writer.
macros() {
  local s
  [ "$1" = base ] && return
  for s in ${1//+/ }; do
    case $s in
      tags:* | checksum:* | checksum_absent:*) s=${s/:/=} ;;
      without:* | m:*) s=${s/:/_} ;;
    esac
    printf -- '-D%s ' "${s^^}"
  done
}

# build DIR MACROS CFLAGS: makes DIR/pan.
build() {
  cd "$1"
  # shellcheck disable=SC2086
  spin $2 -a "$here/handoff.pml" >spin.log 2>&1 || { cat spin.log >&2; fail "spin refuses the model with: $2"; }
  # All state is global, so partial order reduction would find nothing to reduce.
  # shellcheck disable=SC2086
  gcc -w -DNOREDUCE -DMEMLIM=8000 $3 -o pan pan.c || fail "pan.c does not compile with: $2"
}

# ran LOG: a search that was complete, or that has stopped at what it was looking for.
ran() {
  grep -q 'States\|states, stored' "$1" && ! grep -qE 'too small|out of memory|invalid array|reached -DMEMLIM|error: ' "$1"
}
states() { awk '/states, stored/ {print $1; exit}' "$1"; }
seconds() { awk '/elapsed time/ {print $4; exit}' "$1"; }

# row CONFIG SWITCHES A I1 ... I8: checks one row, prints its lines, fails if a cell differs.
row() {
  local name=$1 set=$2; shift 2
  local want=("$@") flags dir k got differs=0 live
  [ -n "${config[$name]:-}" ] || fail "$name is not a configuration"
  flags="${config[$name]} $(macros "$set")"
  # The short form aborts request 0 only, and its searches are shorter than what optimizing them takes.
  local fast=-O2 quick=-O2 table=24
  if [ "$form" = short ]; then flags="$flags -DLEAVES=1" fast=-O1 quick=-O0 table=21; fi
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT

  (build "$dir" "$flags" "$fast -DSAFETY -DNOCLAIM")
  (cd "$dir" && ./pan -m4000 "-w$table" >safety.log 2>&1) || true
  ran "$dir/safety.log" && grep -q 'errors: 0' "$dir/safety.log" || { cat "$dir/safety.log" >&2; fail "$name, $set: the search broke off"; }

  # Fairness costs ten times the states: two requests have to do where there are many anyway.
  live=$flags
  case $form-$name in short-* | full-wide | full-lossy3 | full-deathsmore) live="$flags -DN=2" ;; esac
  live=$(tr ' ' '\n' <<<"$live" | awk '{split($0, a, "="); v[a[1]] = $0} END {for (k in v) print v[k]}' | sort | tr '\n' ' ')
  (build "$dir" "$live" "$quick -DNFAIR=5")
  (cd "$dir" && ./pan -a -f -m40000 -w20 >live.log 2>&1) || true
  ran "$dir/live.log" && grep -qE 'errors: 0|acceptance cycle' "$dir/live.log" || { cat "$dir/live.log" >&2; fail "$name, $set: the search for I5 broke off"; }

  for k in 0 1 2 3 4 5 6 7 8; do
    local log=$dir/safety.log found="recorded $k"
    if [ "$k" = 5 ]; then log=$dir/live.log found="acceptance cycle"; fi
    if grep -q "$found" "$log"; then got=x; else got=.; fi
    local as="I$k" word=holds
    [ "$got" = x ] && word=violated
    if [ "$k" = 0 ]; then
      as=alarm word=silent
      [ "$got" = x ] && word=fires
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$set" "$as" "$word" "$(states "$log")" "$(seconds "$log")"
    if [ "$got" != "${want[$k]}" ]; then
      printf 'run.sh: %s, %s: %s %s, which expected.tsv does not say\n' "$name" "$set" "$as" "$word" >&2
      differs=1
    fi
  done
  return $differs
}

# rows FORM: the lines of expected.tsv, without what they are for.
rows() { awk -F'\t' -v form="$1" '/^#/ || !NF {next} form == "full" || $1 == "short" {print $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12}' expected.tsv; }

all() {
  local out n=0 broken=0
  out=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$out'" EXIT
  rows "$form" >"$out/rows"
  n=$(wc -l <"$out/rows")
  [ "$n" -ge 20 ] || fail "expected.tsv has only $n rows: the check would be empty"
  nl -ba -w1 -s' ' "$out/rows" |
    xargs -P "$jobs" -L 1 bash -c 'out=$1 form=$2 n=$3; shift 3; "$0" --row "$form" "$@" >"$out/$n.tsv" 2>"$out/$n.err" || touch "$out/$n.bad"' \
      "$here/run.sh" "$out" "$form" || true
  printf 'config\tswitches\tinvariant\tverdict\tstates\tseconds\n'
  for ((i = 1; i <= n; i++)); do
    cat "$out/$i.tsv"
    cat "$out/$i.err" >&2
    [ ! -e "$out/$i.bad" ] || broken=$((broken + 1))
    [ "$(wc -l <"$out/$i.tsv")" -eq 9 ] || { broken=$((broken + 1)); printf 'run.sh: row %s is not complete\n' "$i" >&2; }
  done
  cat "$out"/*.tsv | awk -F'\t' '$3 == "I1" || $3 == "I5" {s += $5; t += $6} END {printf "run.sh: %d states in %.1f s of search, %d a second\n", s, t, s / (t > 0 ? t : 1)}' >&2
  printf 'run.sh: %s sets of switches, %s not as expected\n' "$n" "$broken" >&2
  [ "$broken" -eq 0 ]
}

trace() {
  local name=$1 set=$2 k=${3#I} dir flags
  [ -n "${config[$name]:-}" ] || fail "$name is not a configuration"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT
  flags="${config[$name]} $(macros "$set")"
  if [ "$k" = 5 ]; then  # a run that goes on for ever: not a shortest one
    (build "$dir" "$flags -DN=2" "-O1 -DNFAIR=5")
    (cd "$dir" && ./pan -a -f -m40000 -w20 >log 2>&1) || true
  else
    flags="$flags -DWATCH=$k"
    (build "$dir" "$flags" "-O2 -DSAFETY -DNOCLAIM -DBFS")
    (cd "$dir" && ./pan -w22 >log 2>&1) || true
  fi
  cd "$dir"
  [ -e handoff.pml.trail ] || fail "$name, $set: nothing breaks I$k"
  # shellcheck disable=SC2086
  spin $flags -DSTORY -k handoff.pml.trail -T "$here/handoff.pml" >story 2>/dev/null || true
  printf '%s, %s: I%s is violated after %s steps\n' "$name" "$set" "$k" "$(grep -cE '^[1-9][0-9]*:' handoff.pml.trail)"
  grep -E '^ *[PDR-]: ' story | sed 's/^ *//' | nl -w3 -s'  '
}

# table: stops, detects or misses. Misses: somebody reads what is not its own.
# Detects: nobody does, but only because a check ends the request, or something else is broken.
table() {
  awk -F'\t' '
    /^#/ || !NF {next}
    $2 != "table" && $2 != "long" {next}
    {
      n = split($3, s, "+")
      if (s[1] !~ /^(stale_reserve|late_write|stale_source|double_owner|id_reuse)$/ || n > 2) next
      d = n == 1 ? "nothing" : s[2]
      if (!(d in seen)) {seen[d] = 1; order[++rows] = d}
      other = 0
      for (k = 6; k <= 12; k++) if ($k == "x") other = 1
      if ($10 == "x") v = "misses"
      else if ($5 == "x") v = "misses (no text)"
      else v = ($4 == "x" || other) ? "detects" : "stops"
      cell[s[1], d] = v
    }
    END {
      m = split("stale_reserve late_write stale_source double_owner id_reuse", f, " ")
      printf "| |"; for (i = 1; i <= m; i++) printf " %s |", f[i]
      printf "\n|---|"; for (i = 1; i <= m; i++) printf "---|"; printf "\n"
      for (r = 1; r <= rows; r++) {
        printf "| %s |", order[r]
        for (i = 1; i <= m; i++) printf " %s |", (f[i], order[r]) in cell ? cell[f[i], order[r]] : "?"
        printf "\n"
      }
    }' expected.tsv
}

# rate CONFIG: one search on one core, every state kept and, for comparison, two bits a state.
rate() {
  local name=${1:-wide} dir how cpu
  [ -n "${config[$name]:-}" ] || fail "$name is not a configuration"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$dir'" EXIT
  printf 'config\tsearch\tstates\tCPU seconds\tstates a CPU second\n'
  for how in exhaustive bitstate; do
    local flag='' table=24
    if [ "$how" = bitstate ]; then flag=-DBITSTATE table=31; fi
    (build "$dir" "${config[$name]}" "-O2 -DSAFETY -DNOCLAIM $flag")
    cpu=$(cd "$dir" && TIMEFORMAT='%U %S' && { time ./pan -m4000 "-w$table" >log 2>&1; } 2>&1)
    ran "$dir/log" || { cat "$dir/log" >&2; fail "$name: the search broke off"; }
    awk -v name="$name" -v how="$how" -v n="$(states "$dir/log")" -v cpu="$cpu" \
      'BEGIN {split(cpu, t, " "); s = t[1] + t[2]; printf "%s\t%s\t%d\t%.2f\t%d\n", name, how, n, s, n / s}'
  done
}

for tool in spin gcc awk; do
  command -v "$tool" >/dev/null || fail "$tool is not installed: apt-get install spin gcc libc6-dev mawk"
done
while [ $# -gt 0 ]; do
  case $1 in
    --full) form=full; shift ;;
    --jobs) jobs=$2; shift 2 ;;
    --row) form=$2; shift 2; row "$@"; exit ;;
    --table) table; exit ;;
    --trace) shift; trace "$@"; exit ;;
    --rate) shift; rate "$@"; exit ;;
    *) fail "$1 is not known: see the head of this file" ;;
  esac
done
all
