package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

// full returns a text of nearly 8 MiB, the most that is read of an answer: a part again and again.
func full(head, part, tail string) string {
	return head + strings.Repeat(part+",", (8<<20-len(head)-len(tail)-100)/(len(part)+1)-1) + part + tail
}

// TestAHostileToolServerTakesLittleMemory: the answers of a project's MCP server, with the most values or the most text that fit, four
// calls at once.
func TestAHostileToolServerTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	for name, test := range map[string]struct{ tool, result string }{
		"tools that are numbers":  {"project_tools", full(`{"tools":[`, `0`, `]}`)},
		"tools with no end":       {"project_tools", full(`{"nextCursor":"x","tools":[`, `{"name":"a","description":"`+strings.Repeat("x", 9000)+`"}`, `]}`)},
		"content that is numbers": {"call_project_tool", full(`{"content":[`, `0`, `]}`)},
		"structure of numbers":    {"call_project_tool", full(`{"content":[],"structuredContent":{"a":[`, `0`, `]}}`)},
		"content of one text":     {"call_project_tool", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 8<<20-200) + `"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var message struct {
					ID     *int
					Method string
				}
				asked.Add(1)
				_ = json.NewDecoder(r.Body).Decode(&message)
				if message.ID == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				result := test.result
				if message.Method == "initialize" {
					result = `{"protocolVersion":"2025-06-18"}`
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *message.ID, result)
			})
			s := newToolSite(t, time.Minute, own)
			arguments := `{"project":"alpha"}`
			if test.tool == "call_project_tool" {
				arguments = callTool
			}
			grown := waittest.HeapGrowth(func() {
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						s.Send("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, test.tool, arguments),
							"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
					})
				}
				calls.Wait()
			})
			if asked.Load() < 12 || grown > 200<<20 { // twice 12 for each byte
				t.Errorf("%d MiB, %d requests", grown>>20, asked.Load())
			}
		})
	}
}

// TestAHostilePipelineTakesLittleMemory: each board is as large as it may be, and two are read at once.
func TestAHostilePipelineTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	for name, text := range map[string]string{
		"nulls":   `{"stages":[{"name":"1_a","items":[` + strings.Repeat("null,", 900_000) + `null]}]}`,
		"numbers": full(`{"stages":[{"name":"1_a","items":[`, `0`, `]}]}`),
		"stages":  full(`{"stages":[`, `{"name":"1","items":[]}`, `]}`),
		"stories": full(`{"stages":[{"name":"1_a","items":[`, `{"story_id":"a"}`, `]}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newToolSite(t, time.Minute, http.NotFoundHandler())
			var asked atomic.Int64
			hostile := func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = io.WriteString(w, text)
			}
			grown := waittest.HeapGrowth(func() {
				for i := range 2 {
					s.Add(fmt.Sprint("hostile ", i), gatewaytest.ProjectServer(t, hostile))
				}
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() { s.Get("/api/gateway/pipeline") })
				}
				calls.Wait()
			})
			if asked.Load() < 2 || grown > 96<<20 { // 12 for each byte
				t.Errorf("%d MiB, %d requests", grown>>20, asked.Load())
			}
		})
	}
}
