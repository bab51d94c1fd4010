package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

// TestAMergeIsSeenThrough although its caller leaves; meanwhile the project has no other, and then it is told who has made it.
func TestAMergeIsSeenThrough(t *testing.T) {
	s, b, _, _ := reviewBoard(t)
	asked, let := make(chan string), make(chan struct{})
	b.merge = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		<-let
		b.put("1_a", "5_done", "")
		s.Record("gamma", moved("1_a", "3_qa", "5_done"))
		fmt.Fprint(w, `{"merged":"dddd4444"}`)
	}
	ctx, leave := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "POST", s.URL+gammaStories+"/1_a/merge", strings.NewReader(`{"branch":"story/a","head":"aaaa1111","into":"main"}`))
	request.Header = http.Header{"Authorization": {"Bearer " + gatewaytest.AdminToken}, "Content-Type": {"application/json"}}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			t.Error("it was answered")
		}
	}()
	if got := <-asked; got != `{"branch":"story/a","head":"aaaa1111","into":"main"}` {
		t.Error(got)
	}
	leave()
	<-left
	s.want(s.as(gatewaytest.AdminToken, "POST", gammaStories+"/2_b/merge", `{"branch":"b","head":"bbbb"}`), "409 story/a is being merged for story '1_a'")
	close(let)
	waittest.Until(t, "the merge is in the audit", func() bool {
		page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 9, Action: domain.StoryMerged})
		return err == nil && len(page.Entries) == 1 && page.Entries[0].Detail == "story/a at aaaa1111; commit: dddd4444; stage: 3_qa → 5_done"
	})
	s.want(s.as(gatewaytest.AdminToken, "GET", gammaStories+"/1_a", ""), `"to_stage":"5_done"`, `"by":"admin","via":"api"`)
}

// TestAMergeThatIsRefused says so in the project server's words, and the next one is asked for.
func TestAMergeThatIsRefused(t *testing.T) {
	s, b, agent, _ := reviewBoard(t)
	merge := func(bearer, body string) string { return s.as(bearer, "POST", gammaStories+"/1_a/merge", body) }
	for _, status := range []int{400, 403, 404, 409} {
		b.merge = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "CONFLICT (content): go.mod", status) }
		s.want(merge(gatewaytest.AdminToken, `{"branch":"b","head":"aaaa1111"}`), fmt.Sprintf("%d CONFLICT (content): go.mod", status))
	}
	s.want(merge(agent, `{"branch":"b","head":"aaaa1111"}`), "403 ")
	s.want(merge(gatewaytest.AdminToken, `{"branch":"b"}`), "400 head: ")
	s.want(s.as(gatewaytest.AdminToken, "POST", gammaStories+"/9_none/merge", `{"branch":"b","head":"a"}`), "404 ")
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 9, Action: domain.StoryMerged})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

func moved(id, from, to string) string {
	record, _ := json.Marshal(map[string]any{"type": "stage_transition", "story_id": id, "story_name": id, "from_stage": from, "to_stage": to, "timestamp_ms": time.Now().UnixMilli()})
	return string(record)
}
