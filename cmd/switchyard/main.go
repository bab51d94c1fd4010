// Command switchyard is a gateway in front of several project servers, the project server, and the build agent.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
)

// Exit statuses.
const (
	exitClean   = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP) // the terminal has closed
	}
	go func() {
		<-signals
		notify(stopping)
		cancel()
		<-signals // a second signal ends the process without draining
		os.Exit(exitFailure)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command that args name until it ends or ctx is cancelled, and returns its exit status.
// A failure is one line on stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false
	for _, command := range root.Commands() {
		runE := command.RunE
		command.RunE = func(cmd *cobra.Command, args []string) error {
			began = true
			return runE(cmd, args)
		}
	}
	err := usagef("missing command; 'switchyard help' lists them")
	if len(args) > 0 {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(stderr, "switchyard: "+strings.Join(strings.Fields(err.Error()), " "))
	var usage usageError
	if !began || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// usageError is a mistake in a command line. The exit status is exitUsage.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func asUsage(err error) error {
	var ofFlag config.FlagError
	if errors.As(err, &ofFlag) {
		return usageError{err}
	}
	return err
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:                "switchyard",
		Short:              "Switchyard is a gateway and web console in front of many project servers",
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		upCommand(), gatewayCommand(), agentCommand(), projectCommand(), mcpCommand(), backupCommand(), migrateCommand(),
		healthCommand(), versionCommand(), completionCommand(),
	)
	return root
}

// helpCommand is cobra's, except that the help of an unknown command is a usage error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show help for a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q; 'switchyard help' lists them", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

func completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a shell completion script (" + strings.Join(names, ", ") + ")",
		Example:   "  switchyard completion bash > /etc/bash_completion.d/switchyard",
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(names, args[0]) {
				return usagef("completion: SHELL must be one of %s", strings.Join(names, ", "))
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

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
