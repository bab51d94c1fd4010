package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// newSite returns a gateway that calls project servers over HTTP.
func newSite(t testing.TB) *gatewaytest.Site {
	t.Helper()
	client := gatewaytest.NewProjectClient(t)
	return gatewaytest.NewSite(t, service.Options{Projects: client, Stories: client}, handlers.Gateway{})
}

const (
	plainText = "text/plain; charset=utf-8"
	asJSON    = "application/json"
)

func TestLifeOfProjects(t *testing.T) {
	s := newSite(t)
	for i, step := range []struct {
		method, path, body string
		status             int
		media, want        string
	}{
		{"GET", "/gateway/mode", "", 200, asJSON, `{"mode":"gateway"}`},
		{"GET", "/api/gateway", "", 200, asJSON, `{"active":null,"projects":[]}`},
		{"POST", "/api/gateway/projects", `{"name":" beta ","url":"\thttp://b/x/ "}`, 200, asJSON, `{"name":"beta","url":"http://b/x/"}`},
		{"POST", "/api/gateway/projects", `{"name":"alpha","url":"http://a","token":"s3cret","more":[1]}`, 200, asJSON, `{"name":"alpha","url":"http://a"}`},
		{"POST", "/api/gateway/projects", `{"name":"<b>&\"Zoë","url":"http://z"}`, 200, asJSON, `{"name":"<b>&\"Zoë","url":"http://z"}`},
		{"POST", "/api/gateway/projects", `{"name":"alpha","url":"http://c"}`, 409, plainText, "project 'alpha' already exists"},
		{"POST", "/api/gateway/projects", `{"name":"\u2003alpha\n","url":"http://c"}`, 409, plainText, "project 'alpha' already exists"},
		{"GET", "/api/gateway", "", 200, asJSON, `{"active":null,"projects":[{"name":"<b>&\"Zoë","url":"http://z"},{"name":"alpha","url":"http://a"},{"name":"beta","url":"http://b/x/"}]}`},
		{"POST", "/api/gateway/switch", `{"project":"beta"}`, 200, asJSON, `{"ok":true}`},
		{"POST", "/api/gateway/switch", `{"project":"gamma"}`, 400, asJSON, `{"ok":false,"error":"project 'gamma' does not exist"}`},
		{"PUT", "/api/gateway/projects/alpha", `{"url":" http://a/2 "}`, 200, asJSON, `{"name":"alpha","url":"http://a/2"}`},
		{"PUT", "/api/gateway/projects/alpha", `{"url":"http://a/2","token":null}`, 200, asJSON, `{"name":"alpha","url":"http://a/2"}`},
		{"PUT", "/api/gateway/projects/alpha", `{"url":"a2"}`, 400, plainText, "url: must begin with http:// or https://"},
		{"PUT", "/api/gateway/projects/alpha", `{"url":"127.0.0.1:3001"}`, 400, plainText, "url: must begin with http:// or https://"},
		{"PUT", "/api/gateway/projects/gamma", `{"url":"http://c"}`, 404, plainText, "project 'gamma' does not exist"},
		{"DELETE", "/api/gateway/projects/gamma", "", 404, plainText, "project 'gamma' does not exist"},
		{"DELETE", "/api/gateway/projects/%3Cb%3E&%22Zo%C3%AB", "", 204, "", ""},
		{"GET", "/api/gateway", "", 200, asJSON, `{"active":"beta","projects":[{"name":"alpha","url":"http://a/2"},{"name":"beta","url":"http://b/x/"}]}`},
		{"DELETE", "/api/gateway/projects/beta", "", 204, "", ""},
		{"GET", "/api/gateway", "", 200, asJSON, `{"active":null,"projects":[{"name":"alpha","url":"http://a/2"}]}`},
		{"GET", "/api/gateway/projects", "", 200, asJSON, `{"projects":[{"name":"alpha","url":"http://a/2"}]}`},
	} {
		got := s.Send(step.method, step.path, step.body)
		if got.StatusCode != step.status || got.Media() != step.media || got.Text != step.want {
			t.Errorf("step %d, %s %s %s:\n got %d %s %s\nwant %d %s %s", i, step.method, step.path, step.body,
				got.StatusCode, got.Media(), got.Text, step.status, step.media, step.want)
		}
	}
	if p, _ := s.Projects.Registry().Find("alpha"); p.Token.Reveal() != "s3cret" {
		t.Error("the token was not kept by the changes")
	}
}

func TestNamesInPaths(t *testing.T) {
	s := newSite(t)
	for name, path := range map[string]string{
		"a/b":       "a%2Fb",
		"50%":       "50%25",
		"50% a/b":   "50%25%20a%2Fb",
		"%2F":       "%252F",
		"two words": "two%20words",
		"plus+":     "plus+",
		"проект":    "%D0%BF%D1%80%D0%BE%D0%B5%D0%BA%D1%82",
		"日本?#;":     "%E6%97%A5%E6%9C%AC%3F%23%3B",
		"...":       "...",
		"*{name}":   "*%7Bname%7D",
		"switch":    "switch",
	} {
		s.Add(name, "http://p")
		if got := s.Send("PUT", "/api/gateway/projects/"+path, `{"url":"http://q"}`); got.StatusCode != 200 {
			t.Errorf("PUT %s: %d %s", path, got.StatusCode, got.Text)
		}
		if got := s.Send("DELETE", "/api/gateway/projects/"+path, ""); got.StatusCode != 204 {
			t.Errorf("DELETE %s: %d %s", path, got.StatusCode, got.Text)
		}
	}
	if left := s.Projects.Registry().Projects; len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRefusedBodies(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", "http://a")
	before := s.Projects.Registry()
	endpoints := []struct{ method, path, good, field string }{
		{"POST", "/api/gateway/switch", `{"project":"alpha"}`, "project"},
		{"POST", "/api/gateway/projects", `{"name":"beta","url":"http://b"}`, "name"},
		{"PUT", "/api/gateway/projects/alpha", `{"url":"http://b"}`, "url"},
		{"POST", "/api/gateway/push", `{"endpoint":"http://b"}`, "endpoint"},
	}
	large := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, e := range endpoints {
		media := plainText
		if strings.HasSuffix(e.path, "/switch") {
			media = asJSON
		}
		for name, test := range map[string]struct {
			body    string
			headers []string
			status  int
		}{
			"empty":            {"", nil, 400},
			"empty, no JSON":   {"", []string{"Content-Type", "text/plain"}, 400},
			"malformed":        {`{"a":`, nil, 400},
			"trailing data":    {e.good + "x", nil, 400},
			"two values":       {e.good + e.good, nil, 400},
			"a list":           {"[" + e.good + "]", nil, 400},
			"null":             {"null", nil, 400},
			"a string":         {`"alpha"`, nil, 400},
			"missing":          {"{}", nil, 400},
			"null field":       {strings.Replace(e.good, `{"`+e.field+`":"`, `{"`+e.field+`":null,"x":"`, 1), nil, 400},
			"mistyped":         {strings.Replace(e.good, `{"`+e.field+`":"`, `{"`+e.field+`":7,"x":"`, 1), nil, 400},
			"other case":       {strings.Replace(e.good, e.field, strings.ToUpper(e.field), 1), nil, 400},
			"no UTF-8":         {strings.Replace(e.good, `":"`, "\":\"\xff", 1), nil, 400},
			"form":             {"project=alpha", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
			"no type":          {e.good, []string{"Content-Type", ""}, 415},
			"text":             {e.good, []string{"Content-Type", "text/plain"}, 415},
			"over 1 MiB":       {large, nil, 413},
			"over 1 MiB, text": {large, []string{"Content-Type", "text/plain"}, 415},
		} {
			got := s.Send(e.method, e.path, test.body, test.headers...)
			if got.StatusCode != test.status || got.Media() != media || got.Text == "" {
				t.Errorf("%s %s, %s: %d %s %s", e.method, e.path, name, got.StatusCode, got.Media(), got.Text)
			}
			if media == asJSON && !strings.HasPrefix(got.Text, `{"ok":false,"error":"`) {
				t.Errorf("%s, %s: %s", e.path, name, got.Text)
			}
		}
	}
	for _, body := range []string{
		`{"name":"","url":"http://b"}`, `{"name":" \u2003","url":"http://b"}`, `{"name":"..","url":"http://b"}`, `{"name":"a\u0000b","url":"http://b"}`,
		`{"name":"` + strings.Repeat("ä", 101) + `","url":"http://b"}`, `{"name":"b","url":""}`, `{"name":"b","url":"b:80"}`,
		`{"name":"b","url":"javascript:alert(1)"}`, `{"name":"b","url":"http://u:p@b"}`, `{"name":"b","url":"http://b?q"}`, `{"name":"b","url":"http://b#f"}`,
		`{"name":"b","url":"http://"}`, `{"name":"b","url":"http://b","token":7}`, `{"name":"b","url":"http://b","token":"a b"}`,
	} {
		got := s.Send("POST", "/api/gateway/projects", body)
		if got.StatusCode != 400 || got.Media() != plainText || !strings.Contains(got.Text, ": ") {
			t.Errorf("%s: %d %s %s", body, got.StatusCode, got.Media(), got.Text)
		}
	}
	if s.Projects.Registry() != before {
		t.Error("a refused request changed the registry")
	}
}

// TestTheSenderOfAHugeBodyIsRefused: with a 413, after which the connection is closed instead of reading the rest.
func TestTheSenderOfAHugeBodyIsRefused(t *testing.T) {
	s := newSite(t)
	huge := strings.Repeat(" ", 32<<20) // more than the buffers between the two hold
	for path, media := range map[string]string{"/api/gateway/projects": "application/json", "/projects": "application/x-www-form-urlencoded"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sent := make(chan error, 1)
		go func() {
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, media, len(huge), huge)
			sent <- err
		}()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
			t.Errorf("%s: %v, %v", path, response, err)
		}
		if err := <-sent; err == nil {
			t.Errorf("%s: all of it was taken", path)
		}
	}
}

func TestContentTypeWithParametersIsJSON(t *testing.T) {
	s := newSite(t)
	for i, media := range []string{"application/json; charset=utf-8", "APPLICATION/JSON", "application/json;x"} {
		body := fmt.Sprintf(`{"name":"p%d","url":"http://p"}`, i)
		if got := s.Send("POST", "/api/gateway/projects", body, "Content-Type", media); got.StatusCode != 200 {
			t.Errorf("%s: %d %s", media, got.StatusCode, got.Text)
		}
	}
}

func TestWrongMethodsAndUnknownPaths(t *testing.T) {
	s := newSite(t)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"DELETE", "/gateway/mode", 405, "GET, HEAD"},
		{"OPTIONS", "/gateway/mode", 405, "GET, HEAD"},
		{"GET", "/api/gateway/switch", 405, "POST"},
		{"DELETE", "/api/gateway/projects", 405, "GET, HEAD, POST"},
		{"POST", "/api/gateway/projects/a%2Fb", 405, "PUT, DELETE"},
		{"PUT", "/api/gateway/pipeline", 405, "GET, HEAD"},
		{"HEAD", "/oauth/status", 405, "GET"},
		{"GET", "/api/gateway/projects/", 404, ""},
		{"GET", "/api/gateway/", 404, ""},
		{"POST", "/api/pipeline", 404, ""},
		{"GET", "/api/", 404, ""},
		{"GET", "/gateway/nothing", 404, ""},
		{"BREW", "/gateway/nothing", 404, ""},
	} {
		got := s.Send(test.method, test.path, "")
		if got.StatusCode != test.status || got.Media() != plainText || got.Header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d %s, Allow %q", test.method, test.path, got.StatusCode, got.Media(), got.Header.Get("Allow"))
		}
	}
	if got := s.Send("HEAD", "/api/gateway", ""); got.StatusCode != 200 || got.Media() != asJSON {
		t.Errorf("HEAD: %d %s", got.StatusCode, got.Media())
	}
}

func TestParallelAddsOfOneName(t *testing.T) {
	s := newSite(t)
	var group sync.WaitGroup
	statuses := make(chan int, 100)
	for i := range 100 {
		group.Go(func() {
			statuses <- s.Send("POST", "/api/gateway/projects", fmt.Sprintf(`{"name":"one","url":"http://%d"}`, i)).StatusCode
		})
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[200] != 1 || count[409] != 99 {
		t.Errorf("statuses: %v", count)
	}
}

func TestStorageFailureIsNoSuccess(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", "http://a")
	s.Store.Close()
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/api/gateway/projects", `{"name":"b","url":"http://b"}`, 400, "the store failed"},
		{"PUT", "/api/gateway/projects/alpha", `{"url":"http://b"}`, 400, "the store failed"},
		{"DELETE", "/api/gateway/projects/alpha", "", 400, "the store failed"},
		{"POST", "/api/gateway/switch", `{"project":"alpha"}`, 400, `{"ok":false,"error":"the store failed"}`},
		{"GET", "/api/gateway", "", 200, `{"active":null,"projects":[{"name":"alpha","url":"http://a"}]}`},
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 503, "the store failed"},
	} {
		if got := s.Send(test.method, test.path, test.body); got.StatusCode != test.status || got.Text != test.want {
			t.Errorf("%s %s: %d %s", test.method, test.path, got.StatusCode, got.Text)
		}
	}
}

func TestEveryAnswerHasARequestID(t *testing.T) {
	s := newSite(t)
	seen := map[string]bool{}
	for _, path := range []string{"/gateway/mode", "/nowhere", "/api/gateway/switch", "/healthz"} {
		id := s.Send("GET", path, "").Header.Get("X-Request-Id")
		if id == "" || seen[id] {
			t.Errorf("%s: id %q", path, id)
		}
		seen[id] = true
	}
}

// decode reads a JSON answer.
