#!/bin/sh
# Runs each fuzz target below the directory $2 for the time $1; the seeds run among the tests, too.
set -eu
time=$1
below=${2:-.}

# The end of its time can make go test before 1.27 say that a target failed, in these words and without a failing
# input (go.dev/issue/75804).
only_out_of_time() {
	[ "$(echo "$1" | grep -A2 '^--- FAIL: ' | sed 's/ ([0-9.]*s)$//')" = "--- FAIL: $2
    context deadline exceeded
FAIL" ]
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cache=$(go env GOCACHE)/fuzz/switchyard
for package in $(git grep -l '^func Fuzz' -- "$below/*_test.go" | xargs -n1 dirname | sort -u); do
	go test -c -vet=off -ldflags="-s -w" -fuzz . -o "$dir/fuzz.test" "./$package"
	for target in $(sed -n 's/^func \(Fuzz[^(]*\)(.*/\1/p' "$package"/*_test.go); do
		echo "fuzz $package $target"
		out=$(cd "$package" && "$dir/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
			-test.fuzzcachedir "$cache/$package" -test.timeout 10m 2>&1) ||
			only_out_of_time "$out" "$target" || { echo "$out"; exit 1; }
	done
done
