package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/views"
)

func TestAgentsAreListedAPageAtATime(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	var last domain.Agent
	for i := range 45 {
		last = s.join(fmt.Sprintf("builder-%02d", i))
	}
	first := s.Get("/agents")
	first.WantText(t, `name="q" value=""`, "builder-00", "builder-19", "1 to 20 of 45", `href="/agents?page=2"`).WantNoText(t, "builder-20", ">Previous<")
	if n := len(openingTag.FindAllString(first.Text, -1)); n > maxElements {
		t.Errorf("the page has %d elements", n)
	}
	s.Get("/agents?page=3").WantText(t, "builder-44", "41 to 45 of 45").WantNoText(t, "builder-39", ">Next<")
	s.Get("/agents?q=%20BUILDER-3%20").WantText(t, "builder-30", "builder-39").WantNoText(t, "builder-29", "Pages of agents")
	s.Get("/agents?q=nobody").WantText(t, "No matching agents.", "Show all")
	s.Get("/agents?q="+strings.Repeat("a", domain.MaxFilter+1)).WantStatus(t, http.StatusBadRequest)

	link, _, _ := strings.Cut(views.AgentURL(last.ID), "#")
	s.Get(link).WantText(t, "builder-44", "41 to 45 of 45")

	// A form returns to the page that it was sent from.
	assign := func(header, page string) gatewaytest.Answer {
		return s.Do(http.MethodPost, views.AssignAgentURL(last.ID), "project=alpha",
			"Content-Type", "application/x-www-form-urlencoded", header, s.Server.URL+page)
	}
	s.follow(assign("Referer", "/agents?q=builder-4")).WantText(t, "builder-44 is assigned to alpha.", "builder-40").WantNoText(t, "builder-39")
	s.follow(assign("Referer", "/projects?page=3")).WantText(t, "1 to 20 of 45")
	s.Get("/agents?q=alpha").WantText(t, "builder-44").WantNoText(t, "builder-43")
}

func TestFewAgentsNeedNoFilterAndNoPages(t *testing.T) {
	s := newConsoleSite(t)
	s.join("builder")
	s.Get("/agents").WantText(t, "builder").WantNoText(t, "agents-filter", "Pages of agents")
}
