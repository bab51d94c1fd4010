package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

// TestAClaimIsInTheAuditWhateverIsKilled: a gateway that dies while it moves the story leaves the claim and who has made it; a claim
// that is given back, since its story cannot be moved, leaves neither.
func TestAClaimIsInTheAuditWhateverIsKilled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		dir, address := t.TempDir(), freeAddress(t)
		work := newStories(t, filepath.Join(dir, "work"), 3)
		project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+work.dir, "--listen=127.0.0.1:0", "--allow-writes"))
		target, err := url.Parse(project.url)
		if err != nil {
			t.Fatal(err)
		}
		moves, answer := make(chan struct{}), make(chan int)
		proxy := httputil.NewSingleHostReverseProxy(target)
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "PATCH" {
				moves <- struct{}{}
				w.WriteHeader(<-answer)
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		defer slow.Close()
		begin := func() *process {
			cmd := switchyard(t, dir, "gateway", "--listen="+address, "--data=DIR/data", "--poll-interval=100ms")
			p := on.start(t, withEnv(cmd, "SWITCHYARD_ADMIN_TOKEN="+claimAdmin))
			p.bearer = claimAdmin
			return p
		}
		p := begin()
		if status, text := p.do(t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":"alpha","url":%q}`, slow.URL)); status/100 != 2 {
			t.Fatalf("%d %s", status, text)
		}
		p.eventually(t, "/api/gateway/pipeline", `"0_story"`)
		c := &claimed{T: t, stories: work, gateways: []*process{p}}
		mara, zoe := c.as(0, "mara", "operator"), c.as(0, "zoe", "operator")
		audit := func() string {
			_, text := p.do(t, "GET", "/api/gateway/audit", "")
			return text
		}

		for _, step := range []struct {
			by            *process
			body, detail  string
			holder, other string
		}{
			{mara, `{}`, `"claim: none → mara"`, "mara", "zoe"},
			{zoe, `{"story_id":"0_story","to":"3_qa","take_over":true}`, `"claim: mara → zoe"`, "zoe", "mara"},
		} {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _, _ = step.by.ask("POST", storiesURL+"/claim", step.body)
			}()
			<-moves
			p.killHard()
			answer <- http.StatusConflict
			<-ended
			p = begin()
			p.eventually(t, "/api/gateway/pipeline", `"0_story"`)
			if story := c.story(p, "0_story"); story.Claim == nil || story.Claim.By != step.holder {
				t.Errorf("the claim after the kill: %+v, want %s", story.Claim, step.holder)
			}
			if text := audit(); !strings.Contains(text, `"action":"story.claimed","subject":"alpha/0_story","detail":`+step.detail) {
				t.Errorf("the audit does not have %s: %s", step.detail, text)
			}
		}

		before := audit()
		for _, body := range []string{`{"from":"1_backlog","to":"3_qa"}`, `{"story_id":"0_story","to":"3_qa","take_over":true}`} {
			refused := make(chan string, 1)
			go func() {
				status, text, err := mara.ask("POST", storiesURL+"/claim", body)
				refused <- fmt.Sprint(status, text, err)
			}()
			<-moves
			answer <- http.StatusForbidden
			if text := within(t, refused); !strings.HasPrefix(text, "403") {
				t.Errorf("%s: %s", body, text)
			}
		}
		if story := c.story(p, "0_story"); story.Claim == nil || story.Claim.By != "zoe" {
			t.Errorf("the claim that was to be taken over: %+v", story.Claim)
		}
		if story := c.story(p, "1_story"); story.Claim != nil {
			t.Errorf("the claim of a story that cannot be moved: %+v", story.Claim)
		}
		waittest.Until(t, "the audit as before", func() bool { return audit() == before })
	})
}
