package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

func TestABoardIsNamedAfterItsDirectory(t *testing.T) {
	for dir, want := range map[string]string{
		"/src/alpha":                "alpha",
		"/src/alpha/work":           "alpha",
		"/src/alpha/.huskies/work":  "alpha",
		"/src/alpha/.huskies":       ".huskies",
		"/src/alpha/.huskies/other": "other",
		"/src/work/work":            "work",
		"/work":                     "work",
		"/.huskies/work":            "work",
	} {
		if got := filepath.Base(repositoryOf(dir)); got != want {
			t.Errorf("%s is named %q, want %q", dir, got, want)
		}
	}
}

// stages creates a work directory with one story in 2_current.
func stages(t *testing.T, dir, story string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "2_current"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2_current", story+".md"), []byte("# "+story+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

type registryAnswer struct {
	Active   *string
	Projects []struct{ Name, URL string }
}

// registry returns the registry, with "none" for no active project, and the URLs by name.
func (p *process) registry(t *testing.T) (active string, urls map[string]string) {
	t.Helper()
	_, text := p.do(t, "GET", "/api/gateway", "")
	var answer registryAnswer
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	active, urls = "none", map[string]string{}
	if answer.Active != nil {
		active = *answer.Active
	}
	for _, project := range answer.Projects {
		urls[project.Name] = project.URL
	}
	return active, urls
}

// eventually waits until the response for path contains all of the texts.
func (p *process) eventually(t *testing.T, path string, texts ...string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		_, answer := p.do(t, "GET", path, "")
		missing := ""
		for _, text := range texts {
			if !strings.Contains(answer, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s never has %q: %s", path, missing, answer)
		}
	}
}

func TestUpServesEachDirectoryAsAProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha", ".huskies", "work"), "1_story_login")
	stages(t, filepath.Join(dir, "beta", "work"), "2_story_pay")
	up := func() *process {
		return start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/beta/work", "DIR/alpha/.huskies/work"))
	}
	p := up()
	active, urls := p.registry(t)
	if active != "beta" || len(urls) != 2 || !strings.HasPrefix(urls["alpha"], "http://127.0.0.1:") || !strings.HasPrefix(urls["beta"], "http://127.0.0.1:") || urls["alpha"] == urls["beta"] {
		t.Errorf("active %s, projects %v", active, urls)
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"2_story_pay"`)

	work := filepath.Join(dir, "beta", "work")
	os.Mkdir(filepath.Join(work, "3_qa"), 0o755)
	if err := os.Rename(filepath.Join(work, "2_current", "2_story_pay.md"), filepath.Join(work, "3_qa", "2_story_pay.md")); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, "/api/gateway/events", `"project":"beta"`, `"from_stage":"2_current"`, `"to_stage":"3_qa"`)

	// Other registered projects, and the active one, are kept.
	p.do(t, "POST", "/api/gateway/projects", `{"name":"far","url":"http://192.0.2.1:1"}`)
	p.do(t, "POST", "/api/gateway/switch", `{"project":"alpha"}`)
	if status, _ := p.stop(t, syscall.SIGTERM); status != 0 || strings.Contains(p.stderr.String(), "cut off") {
		t.Errorf("ended with %d, want 0 and nothing cut off; %s", status, &p.stderr)
	}
	p = up()
	active, again := p.registry(t)
	if active != "alpha" || len(again) != 3 || again["far"] != "http://192.0.2.1:1" {
		t.Errorf("after a restart: active %s, projects %v", active, again)
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"2_story_pay"`)
	if again["alpha"] != urls["alpha"] || again["beta"] != urls["beta"] {
		t.Errorf("served at %v, then at %v", urls, again)
	}
	p.stop(t, syscall.SIGTERM)
	taken, err := net.Listen("tcp", strings.TrimPrefix(urls["alpha"], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p = up()
	if _, again = p.registry(t); again["alpha"] == urls["alpha"] || again["beta"] != urls["beta"] {
		t.Errorf("served at %v, and where alpha's port is taken at %v", urls, again)
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"2_story_pay"`)
}

// TestUpServesItsProjectsToWhoHasTheToken: no token is required if the environment has none, even after a start that had one.
func TestUpServesItsProjectsToWhoHasTheToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	for _, token := range []string{"", "s3cret", "other", ""} {
		cmd := switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/alpha")
		cmd.Env = append(cmd.Env, "SWITCHYARD_PROJECT_TOKEN="+token)
		p := start(t, cmd)
		p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`)
		_, urls := p.registry(t)
		for bearer, want := range map[string]int{"": 401, "wrong": 401, token: 200} {
			if token == "" {
				want = 200
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, urls["alpha"]+"/api/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			if bearer != "" {
				request.Header.Set("Authorization", "Bearer "+bearer)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("token %q: %d for %q, want %d", token, response.StatusCode, bearer, want)
			}
		}
		p.stop(t, syscall.SIGTERM)
	}
}

func TestUpRefusesWhatCannotBeServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sub := range []string{"a/alpha", "b/alpha/work", "c", "c\u00a0", "\x7f"} {
		os.MkdirAll(filepath.Join(dir, sub), 0o755)
	}
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	for _, path := range []string{"repository/README.md", "full/work/notes.md"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755)
		os.WriteFile(filepath.Join(dir, path), nil, 0o644)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--name=x", 2, "--name names a single DIR"},
		{"--name=x DIR/c DIR/a", 2, "--name names a single DIR"},
		{"--name=.. DIR/c", 2, "--name: "},
		{"DIR/none", 1, dir + "/none does not exist; with --create it is made"},
		{"DIR/\x7f", 2, "must not contain control characters"},
		{"DIR/repository", 1, dir + "/repository has other files, but no stage directories such as 1_backlog, and no .huskies/work or work that has any"},
		{"DIR/full", 1, dir + "/full/work has other files, but no stage directories"},
		{"DIR/file", 1, dir + "/file is a file, not a directory"},
		{"--poll-interval=x", 2, "--poll-interval: "},
	} {
		status, says := refused(t, switchyard(t, dir, append([]string{"up", "--listen=localhost:0", "--data=DIR/data"}, strings.Fields(c.args)...)...))
		if status != c.status || !strings.Contains(says, c.says) {
			t.Errorf("%s: %d, %s; want %d, %q", c.args, status, says, c.status, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("a refused start made the data directory")
	}
	for _, refused := range []string{"repository", "full/work"} {
		if entries, err := os.ReadDir(filepath.Join(dir, refused)); err != nil || len(entries) != 1 {
			t.Errorf("%s was littered: %v, %v", refused, entries, err)
		}
	}
}

// TestUpFindsTheWorkOfARepository: a repository can be given instead of its work directory.
func TestUpFindsTheWorkOfARepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha", ".huskies", "work"), "1_story_login")
	os.MkdirAll(filepath.Join(dir, "alpha", "work", "drafts"), 0o755) // the other one is preferred
	stages(t, filepath.Join(dir, "beta", "work"), "2_story_pay")
	os.WriteFile(filepath.Join(dir, "beta", "README.md"), nil, 0o644)
	os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	cmd := switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--create", "DIR/alpha", "DIR/beta", "DIR/empty", "DIR/new/gamma")
	p := start(t, cmd)
	_, urls := p.registry(t)
	for name, work := range map[string]string{"alpha": "alpha/.huskies/work", "beta": "beta/work", "empty": "empty", "gamma": "new/gamma"} {
		if line := fmt.Sprintf("Project %s is served at %s from %s (stages)\n", name, urls[name], filepath.Join(dir, work)); urls[name] == "" || !strings.Contains(p.said, line) {
			t.Errorf("%q is not in %q", line, p.said)
		}
	}
	p.eventually(t, "/api/gateway/pipeline", `"1_story_login"`, `"2_story_pay"`)
	for path, want := range map[string]int{"alpha": 2, "beta": 2, "empty": 6, "new/gamma": 6} {
		if entries, err := os.ReadDir(filepath.Join(dir, path)); err != nil || len(entries) != want {
			t.Errorf("%s has %v, %v", path, entries, err)
		}
	}
}

func TestTheGatewayShowsNoSample(t *testing.T) {
	t.Parallel()
	p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if active, urls := p.registry(t); active != "none" || len(urls) != 0 {
		t.Errorf("active %s, projects %v", active, urls)
	}
}

func TestProjectsOfTheFileAreRegisteredAtFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "switchyard.toml"), []byte("[[projects]]\nname = 'b'\nurl = 'http://127.0.0.1:1'\n[[projects]]\nname = 'a'\nurl = 'http://127.0.0.1:2'\n"), 0o600)
	gateway := func() *process {
		return start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data", "--config=DIR/switchyard.toml"))
	}
	p := gateway()
	if active, urls := p.registry(t); active != "b" || urls["a"] != "http://127.0.0.1:2" || urls["b"] != "http://127.0.0.1:1" {
		t.Errorf("active %s, projects %v", active, urls)
	}
	p.do(t, "DELETE", "/api/gateway/projects/b", "")
	p.stop(t, syscall.SIGTERM)
	p = gateway()
	if active, urls := p.registry(t); active != "none" || len(urls) != 1 {
		t.Errorf("after a change: active %s, projects %v", active, urls)
	}
}

// TestUpServesBesideAGatewayThatRunsAlready, on the same data directory: it registers its boards there, and leaves other names alone.
func TestUpServesBesideAGatewayThatRunsAlready(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	stages(t, filepath.Join(dir, "acme", "alpha"), "2_story_pay")
	stages(t, filepath.Join(dir, "beta"), "3_story_mail")
	g := start(t, withEnv(switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "DIR/alpha"), "SWITCHYARD_ADMIN_TOKEN="+claimAdmin))
	g.bearer = claimAdmin
	with := func(args ...string) *exec.Cmd {
		return withEnv(switchyard(t, dir, append([]string{"up", "--data=DIR/data"}, args...)...), "SWITCHYARD_API_TOKEN="+claimAdmin)
	}
	for words, cmd := range map[string]*exec.Cmd{
		"SWITCHYARD_API_TOKEN":                     switchyard(t, dir, "up", "--data=DIR/data", "DIR/beta"),
		"beside it, --listen cannot be given":      with("--listen=localhost:0", "DIR/beta"),
		"in use by another running gateway":        with(),
		`--name: "alpha" stands for another direc`: with("--name=alpha", "DIR/beta"),
	} {
		if status, says := refused(t, cmd); status == 0 || !strings.Contains(says, words) {
			t.Errorf("%d, %s, want %s", status, says, words)
		}
	}
	var said waittest.Log
	beside := with("DIR/beta", "DIR/acme/alpha")
	beside.Stdout = &said
	p := launch(t, beside)
	g.eventually(t, "/api/gateway/pipeline", `"acme/alpha"`, `"1_story_login"`, `"2_story_pay"`, `"3_story_mail"`)
	active, urls := g.registry(t)
	if active != "alpha" || len(urls) != 3 {
		t.Errorf("active %s, projects %v", active, urls)
	}
	p.stop(t, syscall.SIGTERM)
	if said := said.String(); !strings.Contains(said, "at "+g.url+": serving beside it\n") || !strings.Contains(said, "Project beta is served at "+urls["beta"]) {
		t.Errorf("it says %s", said)
	}
	launch(t, with("DIR/acme/alpha", "DIR/beta"))
	g.eventually(t, "/api/gateway/pipeline", `"3_story_mail"`)
	if _, again := g.registry(t); !maps.Equal(again, urls) {
		t.Errorf("served at %v, then at %v", urls, again)
	}
}
