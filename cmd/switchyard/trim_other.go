//go:build !linux

package main

// unmapProgram does nothing: other systems have no such call, or need none.
func unmapProgram() {}
