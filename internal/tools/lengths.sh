#!/bin/sh
# Prints how long the files of hand-written product code are, and fails when they grow beyond what a reader takes in:
# half of them have at most 90 lines, nine of ten at most 220, and all at most 300.
set -eu
git ls-files '*.go' '*.templ' |
	grep -vE '_test\.go$|_templ\.go$|^internal/(architecture|bench|bottest|browsertest|gatewaytest|screenshots|signintest|stress|tools|waittest)/' |
	xargs wc -l | awk '$2 != "total"' | sort -n | awk '
		{ lines[NR] = $1; name[NR] = $2 }
		END {
			median = lines[int((NR + 1) / 2)]; ninth = lines[int(NR * 0.9 + 0.5)]
			printf "%d files: median %d lines, 90th percentile %d, longest %d (%s)\n", NR, median, ninth, lines[NR], name[NR]
			if (median > 90 || ninth > 220 || lines[NR] > 300) { print "files are too long: split those that hold two things"; exit 1 }
		}'
