package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/views"
)

func TestAgentsAreListedAPageAtATime(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	var last domain.Agent
	for i := range 45 {
		last = s.join(fmt.Sprintf("builder-%02d", i))
	}
	first := s.get("/agents")
	first.wantText(t, `name="q" value=""`, "builder-00", "builder-19", "1 to 20 of 45", `href="/agents?page=2"`).wantNoText(t, "builder-20", ">Previous<")
	if n := len(openingTag.FindAllString(first.body, -1)); n > maxElements {
		t.Errorf("the page has %d elements", n)
	}
	s.get("/agents?page=3").wantText(t, "builder-44", "41 to 45 of 45").wantNoText(t, "builder-39", ">Next<")
	s.get("/agents?q=%20BUILDER-3%20").wantText(t, "builder-30", "builder-39").wantNoText(t, "builder-29", "Pages of agents")
	s.get("/agents?q=nobody").wantText(t, "No matching agents.", "Show all")
	s.get("/agents?q="+strings.Repeat("a", domain.MaxFilter+1)).wantStatus(t, http.StatusBadRequest)

	link, _, _ := strings.Cut(views.AgentURL(last.ID), "#")
	s.get(link).wantText(t, "builder-44", "41 to 45 of 45")

	// A form returns to the page that it was sent from.
	assign := func(header, page string) answer {
		return s.do(http.MethodPost, views.AssignAgentURL(last.ID), strings.NewReader("project=alpha"),
			"Content-Type", "application/x-www-form-urlencoded", header, s.server.URL+page)
	}
	s.follow(assign("Referer", "/agents?q=builder-4")).wantText(t, "builder-44 is assigned to alpha.", "builder-40").wantNoText(t, "builder-39")
	s.follow(assign("Referer", "/projects?page=3")).wantText(t, "1 to 20 of 45")
	s.get("/agents?q=alpha").wantText(t, "builder-44").wantNoText(t, "builder-43")
}

func TestFewAgentsNeedNoFilterAndNoPages(t *testing.T) {
	s := newConsoleSite(t)
	s.join("builder")
	s.get("/agents").wantText(t, "builder").wantNoText(t, "agents-filter", "Pages of agents")
}
