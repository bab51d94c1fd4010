package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

func TestStoriesPassUnchanged(t *testing.T) {
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w.WriteHeader(map[string]int{"GET": 200, "PATCH": 409, "POST": 201}[r.Method])
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"),
			r.Header.Get("Switchyard-By"), text)
	})
	project.URL += "/below/"
	project.Token = "s3cret"
	client := newClient(t)
	check := func(wantStatus int, want string) func(int, []byte, error) {
		return func(status int, body []byte, err error) {
			t.Helper()
			if err != nil || status != wantStatus || string(body) != want {
				t.Errorf("%d %q, %v, want %d %q", status, body, err, wantStatus, want)
			}
		}
	}
	ctx := domain.WithActor(t.Context(), &domain.Actor{Who: "Zoë B " + strings.Repeat("x", 200)})
	check(409, `PATCH /below/api/stories/7_pay Bearer s3cret application/json Zo%C3%AB%20B%20`+strings.Repeat("x", 94)+` {"version":"1"}`)(client.PatchStory(ctx, project, "7_pay", []byte(`{"version":"1"}`)))
	check(201, `POST /below/api/stories/7_pay/merge Bearer s3cret application/json switchyard {"branch":"b"}`)(client.Merge(t.Context(), project, "7_pay", []byte(`{"branch":"b"}`)))
	check(201, `POST /below/api/stories Bearer s3cret application/json switchyard {"name":"x"}`)(client.CreateStory(t.Context(), project, []byte(`{"name":"x"}`)))
}

func TestStoryIDsDoNotLeadElsewhere(t *testing.T) {
	asked := ""
	project := serve(t, func(w http.ResponseWriter, r *http.Request) { asked = r.RequestURI })
	for id, want := range map[string]string{
		"a/b":                     "/api/stories/a%2Fb",
		"../events":               "/api/stories/..%2Fevents",
		"a?b=1#c":                 "/api/stories/a%3Fb=1%23c",
		"100%":                    "/api/stories/100%25",
		"%2e%2e":                  "/api/stories/%252e%252e",
		"a\r\nX: y":               "/api/stories/a%0D%0AX:%20y",
		"é\x00":                   "/api/stories/%C3%A9%00",
		"...":                     "/api/stories/...",
		"":                        "",
		".":                       "",
		"..":                      "",
		strings.Repeat("x", 5000): "",
	} {
		asked = ""
		status, _, err := newClient(t).PatchStory(t.Context(), project, id, []byte("{}"))
		if asked != want || err != nil || (status == 404) != (want == "") {
			t.Errorf("%.20q: asked %q, want %q; %d, %v", id, asked, want, status, err)
		}
	}
}

func TestStoryWithoutAnAnswerIsAnErrorInWords(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	for want, project := range map[string]domain.Project{
		"connection refused": {URL: "http://127.0.0.1:1"},
		"timed out":          serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }),
		"answers with a redirect": serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}),
		"refuses the token":                   serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }),
		"too large":                           serve(t, bomb()),
		"address not allowed: cloud metadata": {URL: "http://[fd00:ec2::254]"},
	} {
		limit := patience
		if want == "timed out" {
			limit = time.Second
		}
		client := upstream.NewClient(limit)
		t.Cleanup(client.Close)
		status, body, err := client.PatchStory(t.Context(), project, "7_pay", []byte(`{}`))
		if domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), want) || status != 0 || body != nil {
			t.Errorf("%d %q %v, want %s", status, body, err, want)
		}
	}
}

func TestAStoryIsReadWithinBounds(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		code   domain.Code
		want   func(domain.Story) bool
	}{
		"whole": {
			`{"story_id":"7","story_name":"N","stage":"3_qa","since_ms":5,"blocked":"key","blocked_since_ms":6,"merge_failure":null,"path":"3_qa/7.md",` +
				`"version":"v","front_matter":{"a":[1]},"front_matter_error":null,"body":"text","body_cut":false,"criteria":{"done":1,"total":2},` +
				`"commits":[{"hash":"h","author":"a","at_ms":7,"subject":"s","files":1,"added":2,"removed":3}],"writable":true}`,
			"", func(s domain.Story) bool {
				f := s.File
				return s.Name == "N" && s.Stage == "3_qa" && s.Since.UnixMilli() == 5 && s.Blocked == "key" && s.BlockedSince.UnixMilli() == 6 &&
					f.Path == "3_qa/7.md" && f.Version == "v" && string(f.FrontMatter) == `{"a":[1]}` && f.Body == "text" && *f.Criteria == domain.Criteria{Done: 1, Total: 2} &&
					len(f.Commits) == 1 && f.Commits[0].Removed == 3 && f.Writable
			},
		},
		"little":              {`{"story_id":"7"}`, "", func(s domain.Story) bool { return string(s.File.FrontMatter) == "{}" && s.File.Commits == nil }},
		"no commits":          {`{"story_id":"7","commits":[]}`, "", func(s domain.Story) bool { return s.File.Commits != nil }},
		"a long name":         {`{"story_id":"7","story_name":"` + strings.Repeat("x", 5000) + `"}`, "", func(s domain.Story) bool { return len(s.Name) == 1000 }},
		"a long reason":       {`{"story_id":"7","blocked":"` + strings.Repeat("x", 70<<10) + `"}`, "", func(s domain.Story) bool { return len(s.Blocked) == 64<<10 }},
		"a long body":         {`{"story_id":"7","body":"` + strings.Repeat("ä", 200<<10) + `"}`, "", func(s domain.Story) bool { return s.File.BodyCut && len(s.File.Body) <= 256<<10 }},
		"millions of tasks":   {`{"story_id":"7","tasks":[` + strings.Repeat("{},", 2_000_000) + `{}]}`, "", func(s domain.Story) bool { return len(s.File.Tasks) == domain.MaxTasks }},
		"millions of commits": {`{"story_id":"7","commits":[` + strings.Repeat("{},", 2_000_000) + `{}]}`, "", func(s domain.Story) bool { return len(s.File.Commits) == 50 }},
		"deep front matter":   {`{"story_id":"7","front_matter":{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}`, "", func(s domain.Story) bool { return s.File.FrontMatterError != "" }},
		"another story":       {`{"story_id":"8"}`, domain.BadGateway, nil},
		"no story":            {`{"project":"x","stages":[]}`, domain.BadGateway, nil},
		"no JSON":             {`<html>`, domain.BadGateway, nil},
		"a list":              {`[]`, domain.BadGateway, nil},
		"mistyped":            {`{"story_id":"7","blocked":true}`, domain.BadGateway, nil},
	} {
		project := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.answer) })
		story, err := newClient(t).Story(t.Context(), project, "7")
		if domain.CodeOf(err) != test.code || err == nil && !test.want(story) {
			t.Errorf("%s: %+v %+v, %v", name, story, story.File, err)
		}
	}
	project := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
	for _, id := range []string{"7", ".."} {
		if _, err := newClient(t).Story(t.Context(), project, id); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
}
