# Sourced by ./run, ./test, .ci/run and tools/fresh_machine, with the repository's root as the working
# directory: the Debian packages the house needs, and how it is configured and built. Everything here
# speaks on standard error; a failure says what to do and ends the caller with a non-zero status.

build_packages=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev
  libpcre2-dev libutf8proc-dev libedit-dev libcurl4-openssl-dev libssl-dev libxxhash-dev liburing-dev libboost-dev
  python3-pip)
test_packages=("${build_packages[@]}" libgtest-dev)
client_packages=("${test_packages[@]}" python3-venv)
browser_packages=(chromium) # 117 MB, 15 s; without it the tests of the page are skipped
check_packages=("${test_packages[@]}" clang-format)

# Where a compiler cache is installed, it is used.
if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER-}" ] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
fi

say() { printf 'millrace: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

missing_packages() {
  local package installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package; do
    grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
  done
}

# The command that becomes root, as words: none as root itself, sudo where there is one.
as_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || return 1
  # Without a terminal nobody can type a password.
  if [ -t 2 ]; then printf 'sudo\n'; else printf 'sudo\n-n\n'; fi
}

apt_install() {
  local root apt
  mapfile -t root < <(as_root)
  apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300)
  # A stale list can still be good enough, so the install alone decides.
  "${apt[@]}" update 9>&- || true
  "${apt[@]}" install --no-install-recommends "$@" 9>&-
}

# need_packages PACKAGE...: installs those that are missing, or says which and how.
need_packages() {
  local missing how
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian, so no packages are installed (needed: $*)"
    return
  fi
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  how="as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  [ "${MILLRACE_NO_INSTALL:-0}" = 0 ] ||
    die "missing Debian packages: ${missing[*]} (MILLRACE_NO_INSTALL forbids installing them); $how"
  as_root >/dev/null ||
    die "missing Debian packages: ${missing[*]}, and installing them needs root or sudo; $how"
  say "installing Debian packages: ${missing[*]}"
  apt_install "${missing[@]}" >&2 || true
  mapfile -t missing < <(missing_packages "${missing[@]}")
  [ ${#missing[@]} -eq 0 ] ||
    die "could not install these Debian packages: ${missing[*]} (no network, or no permission?); $how"
}

# One set-up at a time: whoever comes second waits for the first. Held until descriptor 9 closes.
lock_build() {
  { mkdir -p build && : >>build/lock; } 2>/dev/null ||
    die "cannot write to $PWD/build, where everything is built: is it another user's, or read-only?"
  exec 9>>build/lock
  flock -n 9 && return
  say "waiting for another build of this tree"
  flock 9
}

find_nvcc() {
  [ "${MILLRACE_CUDA:-ON}" != OFF ] || return 0
  command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true
}

# What a build folder was configured for; another place or another nvcc needs CMake afresh.
configure_key() { printf '%s nvcc=%s\n' "$PWD" "${1-}"; }

configured_for() {
  local dir=build/$1
  [ -f "$dir/build.ninja" ] && [ "$(cat "$dir/configured" 2>/dev/null)" = "$(configure_key "${2-}")" ] &&
    [ ! CMakePresets.json -nt "$dir/configured" ]
}

# configure PRESET [NVCC]: runs CMake unless it ran for just this; the build reruns it by itself when
# a CMakeLists.txt changes.
configure() {
  local dir=build/$1 nvcc=${2-} cmake=(cmake --preset "$1")
  configured_for "$@" && return
  [ ! -f "$dir/configured" ] || cmake+=(--fresh)
  say "configuring $dir${nvcc:+ with $nvcc}"
  if [ -z "$nvcc" ]; then
    "${cmake[@]}" >&2 || die "cannot configure $dir (above)"
  elif ! "${cmake[@]}" -DMILLRACE_CUDA=ON >&2; then
    say "CMake cannot use $nvcc (above): building for the CPU only"
    cmake --preset "$1" --fresh >&2 || die "cannot configure $dir (above)"
  fi
  configure_key "$nvcc" >"$dir/configured"
}

# build PRESET [TARGET...]: the preset's targets, or these.
build() {
  local preset=$1
  shift
  say "building build/$preset"
  cmake --build --preset "$preset" ${1:+--target "$@"} >&2 || die "the build failed (above)"
}
