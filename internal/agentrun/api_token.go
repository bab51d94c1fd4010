package agentrun

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// apiTokenLimit is the time limit for getting a token, so that an unreachable gateway does not delay a command for
// long.
const apiTokenLimit = 5 * time.Second

// apiToken holds the token with which the command itself can call the gateway. Only the runner's goroutine uses it.
type apiToken struct {
	client  *client
	file    *stateFile
	log     *slog.Logger
	project string // the project that secret is for
	secret  string
}

// variables returns the environment variables with a token for a command in the given project, none if the gateway does
// not issue tokens. The last token is reused while it is valid, and while the gateway cannot be reached.
func (t *apiToken) variables(ctx context.Context, project string) []string {
	ctx, cancel := context.WithTimeout(ctx, apiTokenLimit)
	defer cancel()
	if t.project != project {
		t.project, t.secret = project, ""
	}
	if t.secret == "" || isRefusal(
		t.client.call(ctx, apiTokenLimit, http.MethodGet, "/gateway/mode", t.secret, nil, nil), http.StatusUnauthorized,
	) {
		var issued struct {
			Token   string `json:"token"`
			Project string `json:"project"`
		}
		who := t.file.get().identity
		err := t.client.call(ctx, apiTokenLimit, http.MethodPost, who.path()+"/token", who.Secret, nil, &issued)
		if t.secret = ""; err == nil && issued.Project == project { // otherwise the agent has just been reassigned
			t.secret = issued.Token
		}
		if err != nil {
			t.log.WarnContext(ctx, "cannot get a token for the command", "error", err)
		}
	}
	if t.secret == "" {
		return nil
	}
	return []string{"SWITCHYARD_MCP_URL=" + t.client.gateway + "/mcp", "SWITCHYARD_API_TOKEN=" + t.secret}
}
