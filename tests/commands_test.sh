#!/usr/bin/env bash
# ./run and ./test on a machine that is all stand-ins: dpkg, apt, sudo, CMake and the program itself are
# small scripts that log their calls, so that no state of a real machine needs to be broken to see what
# happens then. tools/fresh_machine does it with real ones.
set -u
repo=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree="$scratch/a tree" # with a space
bin=$scratch/bin calls=$scratch/calls lacking=$scratch/lacking
export calls lacking
n_failed=0

stand_in() { # stand_in NAME: the script on standard input
  { printf '#!/usr/bin/env bash\n' && cat; } >"$bin/$1"
  chmod +x "$bin/$1"
}

set_up() { # a fresh tree on a machine that lacks a package and where the caller is root
  rm -rf "$scratch"/*
  mkdir -p "$bin" "$tree/src" "$tree/cmake" "$tree/web" "$tree/tools"
  cp "$repo/run" "$repo/test" "$repo/CMakeLists.txt" "$repo/CMakePresets.json" "$tree"
  cp "$repo/tools/setup.sh" "$tree/tools"
  local tool
  for tool in bash env dirname readlink cat find mkdir flock mv cp touch grep ls chmod sleep awk sort nproc; do
    ln -s "$(command -v $tool)" "$bin/$tool"
  done
  echo libfmt-dev >"$lacking"
  : >"$calls"
  unset MILLRACE_NO_INSTALL
  export MILLRACE_CUDA=OFF uid=0
  stand_in id <<<'echo "$uid"'
  stand_in dpkg-query <<<'shift 3; for p; do grep -qx "$p" "$lacking" || echo "installed $p"; done'
  stand_in apt-get <<'EOF'
echo "apt-get $*" >>"$calls"
echo "apt chatter"
[ -z "${offline-}" ] || exit 100
case " $* " in *" install "*) : >"$lacking" ;; esac
EOF
  stand_in cmake <<'EOF'
echo "cmake $*" >>"$calls"
echo "cmake chatter"
case "$*" in
  *-DMILLRACE_CUDA=ON*) [ -z "${bad_cuda-}" ] || exit 1 ;;
esac
case $1 in
  --preset) mkdir -p "build/$2" && touch "build/$2/build.ninja" ;;
  --build)
    [ -z "${bad_build-}" ] || exit 1
    sleep 0.2
    mkdir -p build/release/src
    printf '#!/usr/bin/env bash\necho "millrace $* in $PWD"\nread -r line && echo "read $line"\nexit 7\n' \
      >build/release/src/millrace
    chmod +x build/release/src/millrace ;;
esac
EOF
}

run() { # run COMMAND [ARGS]: into $out, $err, $rc
  out=$(cd "$scratch" && echo input | PATH=$bin "$@" 2>"$scratch/err")
  rc=$?
  err=$(cat "$scratch/err")
}

expect() { # expect WHAT COMMAND...
  local what=$1
  shift
  "$@" && return
  n_failed=$((n_failed + 1))
  printf 'FAILED: %s\n  rc: %s\n  out: %s\n  err: %s\n  calls: %s\n' "$what" "$rc" "$out" "$err" "$(cat "$calls")"
}
holds() { [[ $1 == *"$2"* ]]; }
n_builds() { grep -c 'cmake --build' "$calls"; }

set_up
run "$tree/run" bench --json "a b"
expect "standard output, input, place and status are the program's" \
  test "$out/$rc" = "millrace bench --json a b in $scratch
read input/7"
expect "it says what it installs" holds "$err" "installing Debian packages: libfmt-dev"
expect "it installs that alone" grep -q 'apt-get .*install --no-install-recommends libfmt-dev$' "$calls"
: >"$calls"
run "$tree/run"
expect "without arguments it serves" holds "$out" "millrace serve"
expect "unchanged, it calls nothing and says nothing" test "$(cat "$calls")$err" = ""
touch "$tree/src/new.cpp"
ln -s "$tree/run" "$scratch/millrace"
run "$scratch/millrace"
expect "through a link, a changed source is built" test "$(n_builds)" = 1
mv "$tree" "$scratch/moved"
run "$scratch/moved/run"
expect "a moved tree is configured afresh" grep -q -- '--fresh' "$calls"

set_up
MILLRACE_NO_INSTALL=1 run "$tree/run"
expect "MILLRACE_NO_INSTALL forbids it" test "$rc$(cat "$calls")" = 1
expect "and it says what and how" holds "$err" "apt-get install --no-install-recommends libfmt-dev"

set_up
uid=1000 run "$tree/run"
expect "neither root nor sudo" test "$rc$(cat "$calls")" = 1
expect "and it says what and how" holds "$err" "apt-get install --no-install-recommends libfmt-dev"
stand_in sudo <<<'echo "sudo $*" >>"$calls"; while [[ $1 == -* ]]; do shift; done; exec "$@"'
uid=1000 run "$tree/run"
expect "with sudo it installs" grep -q 'sudo .*apt-get .*install' "$calls"
expect "and runs" test "$rc" = 7

set_up
offline=1 run "$tree/run"
expect "no network" test "$rc$out" = 1
expect "and it says what and how" holds "$err" "could not install these Debian packages: libfmt-dev"

set_up
stand_in nvcc <<<''
MILLRACE_CUDA=ON run "$tree/run"
expect "nvcc is used" grep -q -- '--preset release -DMILLRACE_CUDA=ON' "$calls"
set_up
stand_in nvcc <<<''
MILLRACE_CUDA=ON bad_cuda=1 run "$tree/run"
expect "an nvcc that CMake refuses is said" holds "$err" "building for the CPU only"
expect "and does without" test "$rc" = 7
: >"$calls"
MILLRACE_CUDA=ON bad_cuda=1 run "$tree/run"
expect "and is not tried each time" test "$(cat "$calls")" = ""

set_up
bad_build=1 run "$tree/run"
expect "a failed build ends it" test "$rc$out" = 1
run "$tree/run"
expect "and the next one builds again" test "$rc" = 7

set_up
(run "$tree/run") & (run "$tree/run") & wait
expect "two at once build once" test "$(n_builds)" = 1

set_up
stand_in ctest <<'EOF'
mkdir -p build/dev/Testing/Temporary
for test in a b; do
  printf 'x_test.cpp:1: Skipped\nno moon\n\n[  SKIPPED ] X.%s\n<end of output>\n' "$test"
done >build/dev/Testing/Temporary/LastTest.log
printf '1/2 Test #1: a ***Skipped\n2/2 Test #2: b ***Skipped\n\n100%% tests passed, 0 tests failed out of 2\nlast\n'
exit 3
EOF
run "$tree/test" fast
expect "./test closes with ctest's summary, the skips' reasons before" test "${out#*b \*\*\*}" = "Skipped

Skipped, and why:
     2 x no moon

100% tests passed, 0 tests failed out of 2
last"
expect "and with its status" test "$rc" = 3

[ "$n_failed" = 0 ] && echo "all held"
