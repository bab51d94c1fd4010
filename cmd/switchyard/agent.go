package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/domain"
)

func agentCommand() *cobra.Command {
	var gateway, label, state string
	var token joinToken
	var leave bool
	cmd := &cobra.Command{
		Use:   "agent --gateway URL [flags] [-- CMD ARG…]",
		Short: "Run a build agent: join a gateway, run a command while assigned to a project",
		Long: "Run a build agent. It redeems a join token once, keeps its identity in the state file, and runs CMD while it is\n" +
			"assigned to a project, with SWITCHYARD_PROJECT, SWITCHYARD_PROJECT_URL and SWITCHYARD_AGENT_ID in its environment, and\n" +
			"with SWITCHYARD_MCP_URL and SWITCHYARD_API_TOKEN, with which it can call the gateway itself.\n" +
			"Without CMD it only joins and stays alive.",
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
			log := newLogger(cmd.ErrOrStderr(), "text", "info")
			options := agentrun.Options{
				Gateway: address, Label: label, StateFile: state, Version: version,
				Token:   func(ctx context.Context) (domain.Secret, error) { return token.get(ctx, cmd, log) },
				Rejoin:  token.given(),
				Command: args, Environment: os.Environ(), Output: cmd.OutOrStdout(), Log: log,
			}
			if leave {
				return agentrun.Leave(cmd.Context(), options)
			}
			return agentrun.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&gateway, "gateway", "", "the `URL` of the gateway")
	flags.StringVar(&token.flag, "token", "", "the join `TOKEN`, which every user of this machine can see; by default $SWITCHYARD_TOKEN, else it is asked for; not needed once joined")
	flags.StringVar(&token.file, "token-file", "", "read the join token from `FILE`")
	flags.StringVar(&label, "label", "", "call the agent `LABEL`; by default the name of this machine")
	flags.StringVar(&state, "state", "", "keep the identity in `FILE` (default $XDG_STATE_HOME/switchyard/agent-LABEL.json)")
	flags.BoolVar(&leave, "leave", false, "give up the identity and exit")
	return cmd
}

// gatewayAddress checks --gateway.
func gatewayAddress(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "", usagef("--gateway is needed: the URL of the gateway")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?#"):
		return "", usagef("--gateway must be an address such as http://yard:3000")
	}
	return text, nil
}

// hostLabel is the machine's name as a label.
func hostLabel() string {
	name, err := os.Hostname()
	if err != nil || domain.CheckAgentLabel(name) != nil {
		return "agent"
	}
	return name
}
