//go:build !linux

package storetest

// memory returns "", the usual directory for temporary files.
func memory() string { return "" }
