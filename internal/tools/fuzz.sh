#!/bin/sh
# Runs each fuzz target for the time $1, without the race detector: the seeds run with it among the tests.
set -eu
time=$1

# The end of its time can make go test before 1.27 say that a target failed, in these words and without a failing
# input (go.dev/issue/75804).
only_out_of_time() {
	[ "$(echo "$1" | grep -A2 '^--- FAIL: ' | sed 's/ ([0-9.]*s)$//')" = "--- FAIL: $2
    context deadline exceeded
FAIL" ]
}

for package in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	for target in $(go test -vet=off -ldflags="-s -w" -list '^Fuzz' "./$package" | grep '^Fuzz'); do
		echo "fuzz $package $target"
		out=$(go test -vet=off -ldflags="-s -w" -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package") ||
			only_out_of_time "$out" "$target" || { echo "$out"; exit 1; }
	done
done
