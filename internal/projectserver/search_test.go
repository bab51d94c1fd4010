package projectserver_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

type foundTexts struct {
	Total int
	Texts []struct {
		ID      string `json:"story_id"`
		Name    string `json:"story_name"`
		Stage   string
		Heading *string
		Excerpt string
		Whole   bool
	}
}

// search returns the answer and its texts in words.
func (s *stories) search(query string) (found foundTexts, lines string) {
	s.t.Helper()
	status, answer, _ := s.ask("GET", "/api/search?"+query, "")
	if err := json.Unmarshal([]byte(answer), &found); err != nil || status != 200 {
		s.t.Fatalf("%s: %d %s", query, status, answer)
	}
	for _, f := range found.Texts {
		heading := "-"
		if f.Heading != nil {
			heading = *f.Heading
		}
		lines += fmt.Sprintf("%s %s %s [%s] %s\n", f.ID, f.Name, f.Stage, heading, f.Excerpt)
	}
	return found, lines
}

func TestTextsOfStoriesAreSearched(t *testing.T) {
	s := newStories(t, false, map[string]string{
		"1_backlog/1_a.md": "# Audit\n\nEach write leaves a line.\n\n## Criteria\n\n- [ ] so does each LOGIN that was refused\n```\n# no heading\nthe last login\n```\n",
		"2_current/2_b.md": "---\nname: Sign out\nmerge_failure: |\n  first\n  FAIL: TestLogin refused\n---\n" + strings.Repeat("long ", 200) + "login then refused " + strings.Repeat("tail ", 100),
		"5_done/3_c.md":    "# Login\n\nNothing else.\n",
	})
	if _, got := s.search("q=l%C3%B6gin"); got != "1_a Audit 1_backlog [Criteria] so does each LOGIN that was refused\n"+
		"2_b Sign out 2_current [-] … "+strings.Repeat("long ", 11)+"login then refused "+strings.Repeat("tail ", 32)+"…\n"+
		"3_c Login 5_done [Login] Login\n" && !strings.Contains(got, "2_b Sign out 2_current [-] … long ") {
		t.Errorf("found\n%s", got)
	}
	found, got := s.search("q=login+refused&limit=1")
	if found.Total != 2 || !found.Texts[0].Whole || found.Texts[0].ID != "2_b" {
		t.Errorf("the words one after the other are not first: %d\n%s", found.Total, got)
	}
	if _, got := s.search("q=testlogin"); got != "2_b Sign out 2_current [Merge failed] FAIL: TestLogin refused\n" {
		t.Errorf("in the failure: %q", got)
	}
	s.write("5_done/3_c.md", "# Renamed\n\nA needle.\n")
	waittest.Until(t, "the new text", func() bool { _, got := s.search("q=needle"); return got == "3_c Renamed 5_done [Renamed] A needle.\n" })
	if found, _ := s.search("q=nothing+else"); found.Total != 0 {
		t.Errorf("the former text is found")
	}
	for _, query := range []string{"", "q=", "q=+", "q=" + strings.Repeat("x", 201), "q=a&limit=-1", "q=a&limit=99999"} {
		if status, _, _ := s.ask("GET", "/api/search?"+query, ""); status != 400 {
			t.Errorf("%.30s: %d", query, status)
		}
	}
	if found, _ := s.search("q=" + url.QueryEscape("%")); found.Total != 0 {
		t.Errorf("%% is found %d times", found.Total)
	}
}
