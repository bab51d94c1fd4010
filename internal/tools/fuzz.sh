#!/bin/sh
# Runs each fuzz target for the time $1, without the race detector: the seeds run with it among the tests.
set -eu
time=$1
for package in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	for target in $(go test -list '^Fuzz' "./$package" | grep '^Fuzz'); do
		echo "fuzz $package $target"
		out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package") || { echo "$out"; exit 1; }
	done
done
