package main

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/domain"
)

type object = map[string]any

func hookSettingsCommand() *cobra.Command {
	var gateway, client string
	cmd := &cobra.Command{
		Use:   "settings [--gateway URL] [--client codex]",
		Short: "Print the settings by which Claude Code, or Codex, shows its sessions at a gateway and asks there",
		Long: "Print the settings by which Claude Code shows its sessions at a gateway and asks people there, or, with\n" +
			"--client codex, the hooks.json of Codex. The token stays in SWITCHYARD_API_TOKEN, in the client's environment.",
		Example: "  claude --settings \"$(switchyard hook settings)\"\n" +
			"  switchyard hook settings --client codex >~/.codex/hooks.json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			known := cmp.Or(gateway, os.Getenv("SWITCHYARD_GATEWAY_URL"))
			address, err := gatewayAddress(known)
			if gateway != "" && err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			var settings object
			switch command := shellQuoted(self) + " hook"; client {
			case domain.ClaudeCode:
				settings = claudeSettings(command, gateway, address)
			case domain.Codex:
				if gateway != "" { // the command has no other place for it
					command = "SWITCHYARD_GATEWAY_URL=" + shellQuoted(gateway) + " " + command
				}
				settings = object{"hooks": clientHooks(domain.Codex, command)}
			default:
				return usagef("--client must be %s or %s", domain.ClaudeCode, domain.Codex)
			}
			if known == "" { // without it a client tells nobody anything
				cmd.PrintErrln("These settings name no gateway: give --gateway, or set SWITCHYARD_GATEWAY_URL for the client.")
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(settings)
		},
	}
	cmd.Flags().StringVar(&gateway, "gateway", "", "the gateway's `URL` (default: $SWITCHYARD_GATEWAY_URL of the client)")
	cmd.Flags().StringVar(&client, "client", domain.ClaudeCode, "print what `CLIENT` reads: claude-code or codex")
	return cmd
}

// claudeSettings are the settings for somebody's own Claude Code; address is that of its gateway, "" if it is not known
// yet.
func claudeSettings(command, gateway, address string) object {
	env := object{}
	settings := object{"hooks": clientHooks(domain.ClaudeCode, command), "env": env}
	if gateway != "" {
		env["SWITCHYARD_GATEWAY_URL"] = gateway
	}
	if address == "" {
		return settings
	}
	for _, line := range agentrun.ClaudeTelemetry(os.Environ(), strings.TrimSuffix(address, "/")) {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
		settings["otelHeadersHelper"] = command + " headers"
	}
	return settings
}

// hookHeadersCommand prints the headers that Claude Code sends with its telemetry: settings cannot contain variables.
func hookHeadersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "headers", Hidden: true, Short: "Print the headers of Claude Code's telemetry", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			headers := map[string]string{}
			if token := os.Getenv("SWITCHYARD_API_TOKEN"); token != "" {
				headers["Authorization"] = "Bearer " + token
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(headers)
		},
	}
}

// clientHooks has a client run a command for each event that matters to its session.
func clientHooks(client, command string) object {
	hooks := object{}
	for _, event := range domain.SessionHooks(client) {
		hook := object{"type": "command", "command": command, "timeout": 10}
		if event == domain.PermissionRequest {
			hook["timeout"] = 24 * 60 * 60
		}
		hooks[event] = []any{object{"hooks": []any{hook}}}
	}
	return hooks
}
