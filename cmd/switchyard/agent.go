package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/config"
	"switchyard/internal/domain"
)

func agentCommand() *cobra.Command {
	var gateway, label, state, worktrees string
	var token joinToken
	var leave, noTelemetry, whenWaiting bool
	cmd := &cobra.Command{
		Use:   "agent --gateway URL [flags] [-- CMD ARG…]",
		Short: "Run a build agent: join a gateway and run a command while assigned to a project",
		Long: "Run a build agent. It joins a gateway once, with a join token, keeps its identity in the state file, and\n" +
			"runs CMD while it is assigned to a project. CMD gets SWITCHYARD_PROJECT, SWITCHYARD_PROJECT_URL and\n" +
			"SWITCHYARD_AGENT_ID in its environment, as well as SWITCHYARD_GATEWAY_URL, SWITCHYARD_MCP_URL and\n" +
			"SWITCHYARD_API_TOKEN for calling the gateway itself. Without CMD the agent only joins and sends heartbeats.",
		Example: "  switchyard agent --gateway http://yard:3000 --token-file join-token -- ./build-loop",
		Args: func(cmd *cobra.Command, args []string) error {
			if before := cmd.ArgsLenAtDash(); len(args) > 0 && before != 0 {
				return fmt.Errorf("the command must follow --: switchyard agent … -- %s", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := gatewayAddress(gateway)
			if err := errors.Join(err, token.check()); err != nil {
				return err
			}
			if label == "" {
				label = hostLabel()
			}
			if err := domain.CheckAgentLabel(label); err != nil {
				return usagef("--%s", domain.MessageOf(err))
			}
			if state == "" {
				if state, err = agentStateFile(label); err != nil {
					return err
				}
			}
			if !cmd.Flags().Changed("when-waiting") {
				whenWaiting = startsWhenWaiting(args)
			}
			if args, err = askingCommand(args, filepath.Dir(state)); err != nil {
				return err
			}
			if worktrees != "" {
				if worktrees, err = filepath.Abs(worktrees); err != nil {
					return err
				}
			}
			log := newLogger(cmd.ErrOrStderr(), "text", "info")
			options := agentrun.Options{
				Gateway: address, Label: label, StateFile: state, Version: version(),
				Token:   func(ctx context.Context) (domain.Secret, error) { return token.get(ctx, cmd, log) },
				Rejoin:  token.given(),
				Command: args, WhenWaiting: whenWaiting, NoTelemetry: noTelemetry, Worktrees: worktrees,
				Environment: os.Environ(),
				Output:      raw(cmd.OutOrStdout()), Log: log,
			}
			if leave {
				return agentrun.Leave(cmd.Context(), options)
			}
			return agentrun.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&gateway, "gateway", "", "call the gateway at `URL` (required)")
	flags.StringVar(&token.flag, "token", "", "join with `TOKEN`; other users of this machine can see it in the process "+
		"list; prompted for if neither given nor in $SWITCHYARD_TOKEN; not needed after joining")
	flags.StringVar(&token.file, "token-file", "", "read the join token from `FILE`")
	flags.StringVar(&label, "label", "", "name the agent `LABEL` (default: this machine's host name)")
	flags.StringVar(&state, "state", "", "keep the agent's identity in `FILE` (default "+
		"\"$XDG_STATE_HOME/switchyard/agent-LABEL.json\")")
	flags.BoolVar(&whenWaiting, "when-waiting", false, "start CMD only when there is a story that it could claim "+
		"(default for claude and codex)")
	flags.StringVar(&worktrees, "worktrees", "", "tell CMD, in $SWITCHYARD_WORKTREES, to work in a work tree of its own "+
		"for each story, below `DIR`")
	flags.BoolVar(&noTelemetry, "no-telemetry", false, "do not make CMD's client report to the gateway what it uses")
	flags.BoolVar(&leave, "leave", false, "remove the agent from the gateway, delete its identity, and exit")
	return cmd
}

// startsWhenWaiting reports whether a command, unless the flag says otherwise, starts only when a story waits: a model
// that finds none costs money.
func startsWhenWaiting(command []string) bool {
	if len(command) == 0 {
		return false
	}
	name := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	return name == "claude" || name == "codex"
}

func gatewayAddress(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "", usagef("--gateway is required: the URL of the gateway")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(text, "?#"):
		return "", usagef("--gateway must be an address such as http://yard:3000")
	}
	return text, nil
}

// hostLabel returns the machine's host name, or "agent" if that is not a valid label.
func hostLabel() string {
	name, err := os.Hostname()
	if err != nil || domain.CheckAgentLabel(name) != nil {
		return "agent"
	}
	return name
}

func agentStateFile(label string) (string, error) {
	dir, ok := config.Expand("$XDG_STATE_HOME/switchyard", os.Getenv)
	if !ok {
		return "", errors.New("no home directory for the agent's state: set --state")
	}
	return filepath.Join(dir, agentStateName(label)), nil
}

// maxStateName is in bytes. Names of lock and temporary files are longer and must still fit the usual limit of 255.
const maxStateName = 255 - len("..tmp")

// agentStateName returns a file name that is unique to the label. A label that is too long for one is replaced by its
// hash.
func agentStateName(label string) string {
	name := "agent-" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(label) + ".json"
	if len(name) > maxStateName {
		return fmt.Sprintf("agent-%%sha256-%x.json", sha256.Sum256([]byte(label)))
	}
	return name
}

// joinToken holds the flags that an agent's join token can come from.
type joinToken struct {
	flag string // the token itself
	file string // a file that holds it
}

func (j joinToken) check() error {
	if j.flag != "" && j.file != "" {
		return usagef("--token and --token-file: only one of them can be given")
	}
	return nil
}

// given reports whether there is a token without prompting for one.
func (j joinToken) given() bool {
	return j.flag != "" || j.file != "" || os.Getenv("SWITCHYARD_TOKEN") != ""
}

// get returns the token from the flag, else the file, else the environment, else a prompt. It reads the file each time
// it is called, since an agent that has joined needs none.
func (j joinToken) get(ctx context.Context, cmd *cobra.Command, log *slog.Logger) (domain.Secret, error) {
	if j.file == "" {
		if token := cmp.Or(j.flag, os.Getenv("SWITCHYARD_TOKEN")); token != "" {
			return domain.Secret(token), nil
		}
		return askForToken(ctx, cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	token, warnings, err := config.ReadTokenFile(j.file, os.Getenv)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return token, nil
}

func askForToken(ctx context.Context, in io.Reader, out io.Writer) (domain.Secret, error) {
	fmt.Fprint(out, "Join token: ")
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		if text == "" {
			return "", errors.New("a join token is required: create one on the gateway's Agents page, and enter it here or " +
				"pass it with --token-file or SWITCHYARD_TOKEN")
		}
		return domain.Secret(text), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
