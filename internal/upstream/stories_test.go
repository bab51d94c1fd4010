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

func TestStoriesPassAsTheyAre(t *testing.T) {
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w.WriteHeader(map[string]int{"GET": 200, "PATCH": 409, "POST": 201}[r.Method])
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), text)
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
	check(200, "GET /below/api/stories/7_pay Bearer s3cret  ")(client.Story(t.Context(), project, "7_pay"))
	check(409, `PATCH /below/api/stories/7_pay Bearer s3cret application/json {"version":"1"}`)(client.PatchStory(t.Context(), project, "7_pay", []byte(`{"version":"1"}`)))
	check(201, `POST /below/api/stories Bearer s3cret application/json {"name":"x"}`)(client.CreateStory(t.Context(), project, []byte(`{"name":"x"}`)))
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
		status, _, err := newClient(t).Story(t.Context(), project, id)
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
		"redirects": serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}),
		"refuses the token":                   serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }),
		"too large":                           serve(t, bomb()),
		"address not allowed: cloud metadata": {URL: "http://[fd00:ec2::254]"},
	} {
		client := upstream.NewClient(time.Second)
		t.Cleanup(client.Close)
		status, body, err := client.PatchStory(t.Context(), project, "7_pay", []byte(`{}`))
		if domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), want) || status != 0 || body != nil {
			t.Errorf("%d %q %v, want %s", status, body, err, want)
		}
	}
}
