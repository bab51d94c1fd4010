package api_test

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
)

// TestFaultsOfABoardAreShownWhereItIs: pipeline, attention, and the pages of the project and its story.
func TestFaultsOfABoardAreShownWhereItIs(t *testing.T) {
	fault := func(kind, path, text string, since int) string {
		return fmt.Sprintf(`{"kind":%q,"path":%q,"story_id":null,"text":%q,"since_ms":%d}`, kind, path, text, since)
	}
	faults := "[" + strings.Join([]string{
		fault("unreadable", "a.md", "a.md cannot be read: yaml", 7), fault("unreadable", "b.md", "b.md cannot be read: json", 5),
		fault("duplicate", "c.md", "c.md has the id 1, which d.md has", 9),
	}, ",") + "]"
	s := newSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(
		`{"stages":[{"name":"1_a","items":[{"story_id":"7_pay","since_ms":1,"fault":"yaml"}]}],"faults":`+faults+`}`)))
	s.Add("odd", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":[{"name":"1_a","items":[]}],"faults":"none"}`)))
	s.Answered()
	got := s.Send("GET", "/api/gateway/pipeline", "").Text
	for _, want := range []string{`"faults":` + faults + `,"stages":[`, `"faults":[],"stages":[`, `"fault":"yaml"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	got = s.Send("GET", "/api/gateway/attention", "").Text
	for _, want := range []string{
		`"key":"board_fault/alpha/unreadable","kind":"board_fault","project":"alpha"`,
		`"text":"board of alpha: a.md cannot be read: yaml, and 1 more","since_ms":5`,
		`"text":"board of alpha: c.md has the id 1, which d.md has","since_ms":9`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	if page := s.Get("/projects/alpha").Text; strings.Count(page, "cannot be read: ") != 2 || !strings.Contains(page, "has the id 1") {
		t.Error(page)
	}
}
