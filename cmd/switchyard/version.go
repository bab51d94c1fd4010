package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the current release, or the next one during its development.
const version = "0.1.0"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "switchyard %s%s %s %s/%s\n", version, revision(), runtime.Version(),
				runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// revision returns the commit that the binary was built from as " (COMMIT)", "" if it is unknown.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return " (" + setting.Value[:min(12, len(setting.Value))] + ")"
		}
	}
	return ""
}
