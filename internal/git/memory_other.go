//go:build !linux

package git

func limitMemory(int, uint64) {}
