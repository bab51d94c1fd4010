package board

import (
	"cmp"
	"strings"
)

// compareNumbered orders names by the number that they begin with, of any length, then byte by byte.
// Names without a number come last.
func compareNumbered(a, b string) int {
	x, y := number(a), number(b)
	if (x == "") != (y == "") {
		return cmp.Compare(len(y), len(x))
	}
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
}

// number returns the digits that name begins with.
func number(name string) string {
	end := 0
	for end < len(name) && '0' <= name[end] && name[end] <= '9' {
		end++
	}
	return name[:end]
}
