//go:build stress

package stress

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// workerEnv has the worker that this process is, encoded as JSON.
const workerEnv = "SWITCHYARD_STRESS_WORKER"

func TestMain(m *testing.M) {
	text := os.Getenv(workerEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var w worker
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		panic(err)
	}
	w.live()
}

// worker is an agent in a process of its own. It writes the ids of the stories that it gets to stdout, one a line.
type worker struct {
	Gateways  []string
	ID, Token string
}

// live works until the worker has lost track of what it did.
func (w worker) live() {
	id, ok := w.own()
	for round := rand.N(100); ok; round++ {
		if id == "" {
			if id, ok = w.claim(round); !ok || id == "" {
				continue
			}
			fmt.Println(id)
		}
		if ok = w.complete(round, id); ok {
			id = ""
		}
	}
}

func (w worker) gateway(n int) string { return w.Gateways[n%len(w.Gateways)] }

// own returns a story that the agent has claimed, "" if it has none.
func (w worker) own() (id string, ok bool) {
	var answer struct {
		Projects map[string]struct {
			Stages []struct {
				Name  string
				Items []struct {
					StoryID string `json:"story_id"`
					Claim   *struct {
						AgentID string `json:"agent_id"`
					}
				}
			}
		}
	}
	pause(context.Background(), 1200*time.Millisecond) // a change on one gateway shows on the others within a second
	status, err := call(context.Background(), "GET", w.gateway(rand.N(3))+"/api/gateway/pipeline", w.Token, nil, &answer)
	if err != nil || status != 200 || len(answer.Projects["alpha"].Stages) == 0 {
		return "", false
	}
	for _, stage := range answer.Projects["alpha"].Stages[:2] {
		for _, item := range stage.Items {
			if item.Claim != nil && item.Claim.AgentID == w.ID {
				fmt.Println(item.StoryID)
				return item.StoryID, true
			}
		}
	}
	return "", true
}

// claim claims the next story, over the API and MCP in turn.
func (w worker) claim(round int) (id string, ok bool) {
	type story struct {
		StoryID string `json:"story_id"`
	}
	if round%2 == 0 {
		var claimed story
		status, text := w.send("POST", w.gateway(round)+"/api/gateway/projects/alpha/stories/claim", `{"wait":"2s"}`)
		ok = status == 204 || status == 200 && json.Unmarshal(text, &claimed) == nil
		return claimed.StoryID, ok
	}
	var answer struct {
		Result struct {
			IsError           bool
			StructuredContent struct{ Story *story }
		}
	}
	const tool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim_story","arguments":{"project":"alpha","wait":"2s"}}}`
	status, text := w.send("POST", w.gateway(round)+"/mcp", tool)
	if status != 200 || json.Unmarshal(text, &answer) != nil || answer.Result.IsError {
		return "", false
	}
	if story := answer.Result.StructuredContent.Story; story != nil {
		id = story.StoryID
	}
	return id, true
}

// send returns the status 0 if there is no answer.
func (w worker) send(method, url, body string) (status int, text []byte) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + w.Token}}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

// complete moves a story to the last stage. It returns false if it is not sure that it has.
func (w worker) complete(round int, id string) bool {
	address := w.gateway(round+1) + "/api/gateway/projects/alpha/stories/" + id
	var story struct{ Stage, Version string }
	status, text := w.send("GET", address, "")
	if status != 200 || json.Unmarshal(text, &story) != nil || story.Version == "" {
		return false
	}
	status, _ = w.send("PATCH", address, fmt.Sprintf(`{"version":%q,"stage":"3_done"}`, story.Version))
	return status == 200
}
