// Command switchyard is a gateway in front of several project servers, the project server, and the build agent.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // the image and small systems have no time zones

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/internal/config"
)

const (
	exitClean   = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP) // the terminal has closed
	}
	go func() {
		<-signals
		tellService(stopping)
		cancel()
		<-signals // a second signal ends the process without draining
		os.Exit(exitFailure)
	}()
	if os.Getenv("GOGC") == "" {
		// With Go's 100, 10,000 followed projects take 40 to 80 MiB more than with 75, and 3 % less processor time
		// (internal/bench). With 75, a board of 20,000 stories that keeps changing takes up to 253 MiB of the 250 that
		// it may use (internal/stress).
		debug.SetGCPercent(65)
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command that args name until it ends or ctx is cancelled, and returns its exit status. A failure is one
// line on stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	stdout, stderr = terminal{stdout}, terminal{stderr}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { began = cmd.HasParent() }
	err := usagef("missing command; 'switchyard help' lists them")
	if len(args) > 0 {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(stderr, "switchyard: "+strings.Join(strings.Fields(err.Error()), " "))
	_, usage := errors.AsType[usageError](err)
	_, flag := errors.AsType[config.FlagError](err)
	if usage || flag || !began {
		return exitUsage
	}
	return exitFailure
}

// usageError is a mistake in a command line. The exit status is exitUsage.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:                "switchyard",
		Short:              "Switchyard is a gateway and web console in front of many project servers",
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, // unknownCommand suggests its own, in one line
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:               cobra.ArbitraryArgs,
	}
	// Not cobra's Version: its template makes the linker keep every method of every type, 5 MB.
	asked := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked && len(args) == 0 {
			return printVersion(cmd, args)
		}
		return unknownCommand(cmd, args...)
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		upCommand(), gatewayCommand(), agentCommand(), projectCommand(), layoutsCommand(), mcpCommand(), hookCommand(),
		backupCommand(), migrateCommand(),
		healthCommand(), doctorCommand(), versionCommand(), completionCommand(),
	)
	completePaths(root)
	return root
}

func unknownCommand(cmd *cobra.Command, args ...string) error {
	var names []string
	for _, command := range cmd.Root().Commands() {
		names = append(names, command.Name())
	}
	hint := cmp.Or(config.DidYouMean(args[0], "", names), "; 'switchyard help' lists them")
	return usagef("unknown command %q%s", strings.Join(args, " "), hint)
}

// wrongFlag names flags similar to an unknown one, and says what a flag's value must be.
func wrongFlag(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag, must := wrong.GetFlag(), "a whole number"
		if flag.Value.Type() == "bool" {
			must = "true or false"
		}
		return usagef("--%s: %q is not %s", flag.Name, wrong.GetValue(), must)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	if !cmd.HasParent() && cmd.Flags().NArg() > 0 { // the flags of an unknown command
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return usagef("%w%s", err, config.DidYouMean(unknown.GetSpecifiedName(), "--", names))
}

// completePaths makes shells complete files and directories only if a flag takes one. Commands whose arguments are
// paths say so themselves.
func completePaths(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, command := range root.Commands() {
		command.Flags().VisitAll(func(f *pflag.Flag) {
			switch value, _ := pflag.UnquoteUsage(f); value {
			case "DIR":
				_ = command.MarkFlagDirname(f.Name) // the flag exists
			case "FILE":
				_ = command.MarkFlagFilename(f.Name)
			}
		})
	}
}

// For arguments that are paths.
var (
	completeDirs  = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	completeFiles = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
)

// helpCommand is cobra's, except that the help of an unknown command is a usage error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show help for a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, args...)
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
