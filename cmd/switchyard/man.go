//go:build man

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"
)

// With the tag man the program writes the manual pages to the directory $MAN and ends: make release runs it.
func init() {
	root := rootCommand()
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "Switchyard " + version(), Manual: "Switchyard"}
	if err := doc.GenManTree(root, &header, os.Getenv("MAN")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailure)
	}
	os.Exit(exitClean)
}
