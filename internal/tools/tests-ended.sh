#!/bin/sh
# The last line of make test, from what gotestsum says.
echo "$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"
