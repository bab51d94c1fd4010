package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// filePages returns how many KiB of mapped files this process has in memory.
func filePages(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

func TestPagesOfTheProgramThatOnlyTheStartNeededAreGivenBack(t *testing.T) {
	before := filePages(t)
	unmapProgram()
	if after := filePages(t); after >= before {
		t.Errorf("%d KiB of files are in memory, as before (%d KiB)", after, before)
	}
}
