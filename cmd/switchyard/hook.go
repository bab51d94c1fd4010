package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

const (
	// hookPatience is how long a gateway may take to accept an event that asks nobody: the client waits meanwhile.
	hookPatience = time.Second
	// maxHook is how much of an event is read, in bytes: a tool's output may be megabytes.
	maxHook = 64 << 20
)

func hookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Answer a coding agent's hook, read from stdin, and tell a gateway what its session does",
		Long: "Answer a hook of Claude Code or Codex: a PermissionRequest, read from stdin, is asked at the gateway, and\n" +
			"the decision is written to stdout as soon as somebody has made it. Of other events the gateway is told what\n" +
			"the session does: no prompt, input or output is sent, and without a gateway nothing happens.\n" +
			"SWITCHYARD_GATEWAY_URL and SWITCHYARD_API_TOKEN, which an agent's command has, say where and as whom.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input := bytes.NewBuffer(make([]byte, 0, 5<<20)) // growing it takes longer than reading
			if _, err := input.ReadFrom(io.LimitReader(cmd.InOrStdin(), maxHook)); err != nil {
				return err
			}
			object, _ := wire.ParseObject(input.Bytes()) // an invalid one says nothing
			event, unread := wire.HookOf(object)
			address, err := gatewayAddress(os.Getenv("SWITCHYARD_GATEWAY_URL"))
			switch {
			case event.Name != domain.PermissionRequest:
				if known, says := event.Identify(); unread == nil && says && err == nil {
					_, _ = cmd.OutOrStdout().Write(tellHook(cmd.Context(), address, known))
				}
				return nil
			case err != nil:
				return errors.New("SWITCHYARD_GATEWAY_URL must be the address of the gateway")
			}
			answer, err := askHook(cmd.Context(), address, input.Bytes())
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(answer)
			return err
		},
	}
	cmd.AddCommand(hookSettingsCommand(), hookHeadersCommand())
	return cmd
}

// tellHook tells the gateway about an event, with the host and where in git it is working. It returns the answer, or
// nothing if none comes soon, so that the client goes on.
func tellHook(ctx context.Context, gateway string, event domain.HookEvent) []byte {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	event.Host, _ = os.Hostname()
	event.Project = os.Getenv("SWITCHYARD_PROJECT")
	if tree, found := git.Find(event.CWD); found {
		event.Worktree, event.Branch = tree.Dir, tree.Branch()
	}
	answer, err := askHook(ctx, gateway, domain.EncodeJSON(event))
	if err != nil {
		return nil
	}
	return answer
}

// askHook passes a hook's event on and returns the answer, which may take as long as people do.
func askHook(ctx context.Context, gateway string, event json.RawMessage) (answer []byte, err error) {
	token := domain.Secret(os.Getenv("SWITCHYARD_API_TOKEN"))
	if !token.FitsHeader() {
		token = ""
	}
	client := agentrun.NewClient(gateway)
	err = client.Call(ctx, 0, http.MethodPost, "/api/hooks/claude-code", token.Reveal(), event, &answer)
	if _, malformed := wire.ParseObject(answer); err == nil && len(answer) > 0 && malformed != nil {
		// Clients would take any other text as part of the prompt.
		return nil, fmt.Errorf("the response is no gateway's: %w", malformed)
	}
	return answer, err
}

// askingCommand adds to a Claude Code command what makes it ask the gateway: an MCP server for permissions without a
// terminal, and hooks that ask and tell. Both are in files of their own in dir, without secrets: these are in the
// command's environment.
func askingCommand(args []string, dir string) ([]string, error) {
	if len(args) == 0 || strings.TrimSuffix(filepath.Base(args[0]), ".exe") != "claude" {
		return args, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := files.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	mcp := object{"mcpServers": object{"switchyard": object{
		"type": "http", "url": "${SWITCHYARD_MCP_URL}",
		"headers": object{"Authorization": "Bearer ${SWITCHYARD_API_TOKEN}"},
	}}}
	settings := object{
		"hooks": clientHooks(domain.ClaudeCode, shellQuoted(self)+" hook"),
		// Its own default, auto, asks nobody. A mode among the command's arguments wins.
		"permissions": object{"defaultMode": "default"},
	}
	paths := map[string]string{}
	for name, content := range map[string]object{"claude-mcp.json": mcp, "claude-settings.json": settings} {
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return nil, err
		}
		paths[name] = filepath.Join(dir, name)
		if err := files.WriteAtomic(paths[name], append(text, '\n')); err != nil {
			return nil, err
		}
	}
	return append(args[:len(args):len(args)], "--mcp-config", paths["claude-mcp.json"],
		"--permission-prompt-tool", "mcp__switchyard__permission", "--settings", paths["claude-settings.json"],
		"--allowedTools="+strings.Join(freeTools, ",")), nil
}

// freeTools are our tools that may be used without asking anybody: those that read, and what an agent's token may do to
// stories.
var freeTools = []string{
	"mcp__switchyard__overview", "mcp__switchyard__search", "mcp__switchyard__list_stories",
	"mcp__switchyard__get_story", "mcp__switchyard__get_changes", "mcp__switchyard__wait_for_events",
	"mcp__switchyard__list_agents", "mcp__switchyard__project_tools",
	"mcp__switchyard__claim_story", "mcp__switchyard__release_story", "mcp__switchyard__update_story",
	"mcp__switchyard__ask",
}

func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
