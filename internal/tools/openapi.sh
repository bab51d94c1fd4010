#!/bin/sh
# openapi.sh generates clients and a server from handlers/api/openapi.json with two generators that people use, and compiles them.
# The sum of what has passed is committed, as openapi.passed: that takes minutes where nothing is compiled yet.
set -eu
cd "$(dirname "$0")/../.."
sum=$(cat handlers/api/openapi.json internal/tools/generators.mod internal/tools/openapi.sh | sha256sum)
if test "$(cat internal/tools/openapi.passed)" = "$sum"; then
	exit
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/oapi" "$dir/ogen"
cp internal/tools/generators.mod "$dir/go.mod"
cp internal/tools/generators.sum "$dir/go.sum"
generate="go tool -modfile=internal/tools/generators.mod"
$generate oapi-codegen -generate types,client,std-http-server -package oapi -o "$dir/oapi/api.go" handlers/api/openapi.json
$generate ogen --target "$dir/ogen" --package ogen handlers/api/openapi.json >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
(cd "$dir" && go build ./...)
echo "$sum" >internal/tools/openapi.passed
echo 'The OpenAPI document has passed: commit internal/tools/openapi.passed' >&2
