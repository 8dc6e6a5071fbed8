#!/usr/bin/env bash
# Counts the functions, and the files, that one job enters: from `coppice train` to its model, on one coordinator and one worker. Functions that
# the services enter without a job do not count, nor functions of the client that `coppice version` enters.
#
#   tools/entered/count.sh [-v]    -v lists the functions
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
go build -cover -coverpkg=./... -o "$dir/coppice" ./cmd/coppice
port=$((20000 + RANDOM % 20000))

# run NAME [COMMAND...] starts a cluster, runs a command, and stops the cluster. NAME-client has what the command entered, NAME-services the rest.
run() {
	local name=$1 http="127.0.0.1:$port"
	shift
	mkdir -p "$dir/$name-client" "$dir/$name-services"
	GOCOVERDIR=$dir/$name-services "$dir/coppice" coordinator --dir "$dir/$name-a" --address "$http" --id a >"$dir/$name-a.log" 2>&1 &
	local a=$!
	until curl -fs "http://$http/readyz" >"$dir/ready" 2>/dev/null; do sleep .1; done
	GOCOVERDIR=$dir/$name-services "$dir/coppice" worker --join "$http" --slots 1 --dir "$dir/$name-w" --id w >"$dir/$name-w.log" 2>&1 &
	local w=$!
	sleep 3
	GOCOVERDIR=$dir/$name-client "$dir/coppice" "$@" --server "$http" >"$dir/$name.log" 2>&1
	sleep 1
	kill -INT $w && wait $w || true
	kill -INT $a && wait $a || true
	port=$((port + 10))
}

"$dir/coppice" dataset generate --rows 400 --out "$dir/set.csv" >"$dir/generate.log" 2>&1
mkdir -p "$dir/version"
GOCOVERDIR=$dir/version "$dir/coppice" version >"$dir/version.log"
run idle cluster
run job train --data "$dir/set.csv" --set steps=60 --set preset=paper --model-out "$dir/model"

# entered DIR lists "file function" of all functions with a count above 0.
entered() { go tool covdata func -i "$1" | awk '$NF != "0.0%" && $1 != "total" { sub(/:[0-9]+:?$/, "", $1); print $1, $2 }' | sort -u; }
entered "$dir/job-client" >"$dir/client-all"
entered "$dir/version" >"$dir/version-all"
comm -23 "$dir/client-all" "$dir/version-all" >"$dir/client"
entered "$dir/job-services" >"$dir/with"
entered "$dir/idle-services" >"$dir/without"
comm -23 "$dir/with" "$dir/without" | sort -u - "$dir/client" >"$dir/all"
[ "${1:-}" = -v ] && cat "$dir/all"
grep 'model digest' "$dir/job.log" || true
echo "$(wc -l <"$dir/all") functions in $(cut -d' ' -f1 "$dir/all" | sort -u | wc -l) files"
