package agentrun

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// apiTokenLimit bounds getting a token: a command must not wait for long for a gateway that is away.
const apiTokenLimit = 5 * time.Second

// apiToken is the token with which the command itself may speak to the gateway. Only the runner's goroutine uses it.
type apiToken struct {
	client  *client
	file    *stateFile
	log     *slog.Logger
	project string // that secret is for
	secret  string
}

// variables returns what a command that starts in a project gets in its environment, nothing from a gateway that gives out no
// tokens. The last token is used again while it is good, and while the gateway is away.
func (t *apiToken) variables(ctx context.Context, project string) []string {
	ctx, cancel := context.WithTimeout(ctx, apiTokenLimit)
	defer cancel()
	if t.project != project {
		t.project, t.secret = project, ""
	}
	if t.secret == "" || isRefusal(t.client.checkToken(ctx, t.secret), http.StatusUnauthorized) {
		issued, err := t.client.issueToken(ctx, t.file.who())
		if t.secret = ""; err == nil && issued.Project == project { // else the agent has just been assigned elsewhere
			t.secret = issued.Token
		}
		if err != nil {
			t.log.WarnContext(ctx, "the command gets no token for the gateway", "error", err)
		}
	}
	if t.secret == "" {
		return nil
	}
	return []string{"SWITCHYARD_MCP_URL=" + t.client.gateway + "/mcp", "SWITCHYARD_API_TOKEN=" + t.secret}
}
