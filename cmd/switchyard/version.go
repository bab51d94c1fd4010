package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// nextVersion is the release that is being worked on.
const nextVersion = "0.3.0"

// The linker sets these: the release that this program is, "" for none, and the commit that it was built from.
var release, commit string

// version returns the release or, if this is not one, the next one with "-dev" and, if known, the commit.
func version() string {
	switch revision := revision(); {
	case release != "":
		return release
	case revision != "":
		return nextVersion + "-dev+" + revision
	}
	return nextVersion + "-dev"
}

func revision() string {
	revision := commit
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = cmp.Or(revision, setting.Value)
			}
		}
	}
	return revision[:min(12, len(revision))]
}

func versionLine() string {
	of := ""
	if release != "" && revision() != "" {
		of = " (" + revision() + ")"
	}
	return fmt.Sprintf("switchyard %s%s %s %s/%s\n", version(), of, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE:  printVersion,
	}
}

func printVersion(cmd *cobra.Command, _ []string) error {
	_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
	return err
}

// writtenByKey is the key in the state table for the version that last wrote the database.
const writtenByKey = "written_by"

func recordVersion(ctx context.Context, db database) error {
	before, err := db.State(ctx, writtenByKey)
	if err != nil || before == version() {
		return err
	}
	return db.SetState(ctx, writtenByKey, version())
}
