//go:build !race

package board

const racing = 1
