package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/views"
)

// maxElements is the most elements of a page, with any number of projects.
const maxElements = 3000

var openingTag = regexp.MustCompile(`<[a-z]`)

func TestNoPageGrowsWithTheNumberOfProjects(t *testing.T) {
	s := newScaleSite(t, 2000)
	for i := range 20 {
		agent := s.join(fmt.Sprint("builder ", i))
		s.Submit(views.AssignAgentURL(agent.ID), "project", fmt.Sprintf("project-%05d", i))
	}
	for _, path := range []string{"/", "/?show=troubled", "/projects", "/projects?page=7", "/projects/project-00001", "/agents", "/events", "/search?q=project"} {
		page := s.Get(path).WantStatus(t, http.StatusOK)
		if n := len(openingTag.FindAllString(page.Text, -1)); n > maxElements {
			t.Errorf("%s has %d elements", path, n)
		}
	}
}

func TestProjectsAreListedAPageAtATime(t *testing.T) {
	s := newScaleSite(t, 120)
	s.Answered() // those without an answer come first
	first := s.Get("/projects")
	first.WantText(t, `name="q" value=""`, "project-00000", "project-00029", "1 to 30 of 120", `href="/projects?page=2"`)
	first.WantNoText(t, ">project-00030<", ">Previous<")
	s.Get("/projects?page=4").WantText(t, "project-00100", `href="/projects?page=3"`, "91 to 120 of 120").WantNoText(t, ">Next<")
	s.Get("/projects?page=99").WantText(t, "91 to 120 of 120")
	s.Get("/projects?page=x").WantText(t, "1 to 30 of 120")
	found := s.Get("/projects?q=0011")
	found.WantText(t, `value="0011"`, "project-00110", "project-00119").WantNoText(t, `/projects/project-00000"`, "Pages of projects")
	s.Get("/projects?q=nothing").WantText(t, "No matching projects.", "Show all")
	s.Get("/projects?q="+strings.Repeat("a", domain.MaxFilter+1)).WantStatus(t, http.StatusBadRequest)
	part := s.ask("/projects?q=0011&page=1", "HX-Request", "true")
	if text := part.Body.String(); !strings.Contains(text, "project-00110") || strings.Contains(text, "add-project") || !strings.Contains(text, "q=0011") {
		t.Errorf("the part of a filtered list: %s", text)
	}
}

func TestFewProjectsNeedNoFilterAndNoPages(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	s.Get("/projects").WantText(t, "alpha").WantNoText(t, "projects-filter", "Pages of projects")
}

func TestAnAgentIsAssignedByNameWhereThereAreManyProjects(t *testing.T) {
	s := newScaleSite(t, 120)
	agent := s.join("builder")
	s.Get("/agents").WantText(t, `<datalist id="project-names">`, "Project of builder", `list="project-names"`)
	s.follow(s.Submit(views.AssignAgentURL(agent.ID), "project", " project-00117 ")).WantText(t, "builder is assigned to project-00117.")
	s.Get("/agents").WantText(t, `value="project-00117"`)
	s.Submit(views.AssignAgentURL(agent.ID), "project", "nowhere").WantText(t, "nowhere")
	s.follow(s.Submit(views.AssignAgentURL(agent.ID), "project", "")).WantText(t, "builder is unassigned.")
	s.Get("/events?project="+url.QueryEscape("project-00117")).WantText(t, `<label for="project">Project</label>`, `value="project-00117"`)
}

// TestTheChoiceOfProjectsIsKept in the browser; an address that asks for another choice does not change it.
func TestTheChoiceOfProjectsIsKept(t *testing.T) {
	s := newConsoleSite(t)
	s.add("busy", board("1_backlog:", "2_current: 14_story_login", "3_done:"))
	s.add("idle", board("1_backlog:", "2_current:", "3_done:"))
	s.Get("/").WantText(t, `href="/?keep=all" aria-current="true"`, `href="/?keep=busy"`, `id="project-busy"`, `id="project-idle"`)
	chosen := s.Get("/?keep=busy&q=s").WantStatus(t, http.StatusSeeOther)
	if to := chosen.Header.Get("Location"); to != "/?q=s&show=busy" {
		t.Errorf("it leads to %s", to)
	}
	page := s.Get("/").WantText(t, `data-hx-get="/?show=busy`, `aria-current="true">Busy`, `id="project-busy"`, "1 other project not shown")
	page.WantNoText(t, `id="project-idle"`)
	s.Get("/?show=troubled").WantText(t, `aria-current="true">Troubled`).WantNoText(t, `id="project-busy"`)
	s.Get("/").WantText(t, `aria-current="true">Busy`)
	if part := s.Get("/", "HX-Request", "true"); !strings.Contains(part.Text, `id="project-idle"`) {
		t.Error("a part's address does not say all that the part is")
	}
	s.Get("/?keep=all").WantStatus(t, http.StatusSeeOther)
	s.Get("/").WantText(t, `aria-current="true">All`, `id="project-idle"`)
	s.Get("/?keep=what").WantStatus(t, http.StatusBadRequest)
}
