package handlers_test

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
		s.submit(views.AssignAgentURL(agent.ID), "project", fmt.Sprintf("project-%05d", i))
	}
	for _, path := range []string{"/", "/?show=troubled", "/projects", "/projects?page=7", "/projects/project-00001", "/agents", "/events", "/search?q=project"} {
		page := s.get(path).wantStatus(t, http.StatusOK)
		if n := len(openingTag.FindAllString(page.body, -1)); n > maxElements {
			t.Errorf("%s has %d elements", path, n)
		}
	}
}

func TestProjectsAreListedAPageAtATime(t *testing.T) {
	s := newScaleSite(t, 120)
	first := s.get("/projects")
	first.wantText(t, `name="q" value=""`, "project-00000", "project-00049", "1 to 50 of 120", `href="/projects?page=2"`)
	first.wantNoText(t, ">project-00050<", ">Previous<")
	s.get("/projects?page=3").wantText(t, "project-00100", `href="/projects?page=2"`, "101 to 120 of 120").wantNoText(t, ">Next<")
	s.get("/projects?page=99").wantText(t, "101 to 120 of 120")
	s.get("/projects?page=x").wantText(t, "1 to 50 of 120")
	found := s.get("/projects?q=0011")
	found.wantText(t, `value="0011"`, "project-00110", "project-00119").wantNoText(t, `/projects/project-00000"`, "Pages of projects")
	s.get("/projects?q=nothing").wantText(t, "No matching projects.", "Show all")
	s.get("/projects?q="+strings.Repeat("a", domain.MaxFilter+1)).wantStatus(t, http.StatusBadRequest)
	part := s.ask("/projects?q=0011&page=1", "HX-Request", "true")
	if text := part.Body.String(); !strings.Contains(text, "project-00110") || strings.Contains(text, "add-project") || !strings.Contains(text, "q=0011") {
		t.Errorf("the part of a filtered list: %s", text)
	}
}

func TestFewProjectsNeedNoFilterAndNoPages(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", nil)
	s.get("/projects").wantText(t, "alpha").wantNoText(t, "projects-filter", "Pages of projects")
}

func TestAnAgentIsAssignedByNameWhereThereAreManyProjects(t *testing.T) {
	s := newScaleSite(t, 120)
	agent := s.join("builder")
	s.get("/agents").wantText(t, `<datalist id="project-names">`, "Project of builder", `list="project-names"`)
	s.follow(s.submit(views.AssignAgentURL(agent.ID), "project", " project-00117 ")).wantText(t, "builder is assigned to project-00117.")
	s.get("/agents").wantText(t, `value="project-00117"`)
	s.submit(views.AssignAgentURL(agent.ID), "project", "nowhere").wantText(t, "nowhere")
	s.follow(s.submit(views.AssignAgentURL(agent.ID), "project", "")).wantText(t, "builder is unassigned.")
	s.get("/events?project="+url.QueryEscape("project-00117")).wantText(t, `<label for="project">Project</label>`, `value="project-00117"`)
}

// TestTheChoiceOfProjectsIsKept in the browser; an address that asks for another choice does not change it.
func TestTheChoiceOfProjectsIsKept(t *testing.T) {
	s := newConsoleSite(t)
	s.add("busy", board("1_backlog:", "2_current: 14_story_login", "3_done:"))
	s.add("idle", board("1_backlog:", "2_current:", "3_done:"))
	s.get("/").wantText(t, `href="/?keep=all" aria-current="true"`, `href="/?keep=busy"`, `id="project-busy"`, `id="project-idle"`)
	chosen := s.get("/?keep=busy&q=s").wantStatus(t, http.StatusSeeOther)
	if to := chosen.Header.Get("Location"); to != "/?q=s&show=busy" {
		t.Errorf("it leads to %s", to)
	}
	page := s.get("/").wantText(t, `data-hx-get="/?show=busy`, `aria-current="true">Busy`, `id="project-busy"`, "1 other project not shown")
	page.wantNoText(t, `id="project-idle"`)
	s.get("/?show=troubled").wantText(t, `aria-current="true">Troubled`).wantNoText(t, `id="project-busy"`)
	s.get("/").wantText(t, `aria-current="true">Busy`)
	if part := s.get("/", "HX-Request", "true"); !strings.Contains(part.body, `id="project-idle"`) {
		t.Error("a part's address does not say all that the part is")
	}
	s.get("/?keep=all").wantStatus(t, http.StatusSeeOther)
	s.get("/").wantText(t, `aria-current="true">All`, `id="project-idle"`)
	s.get("/?keep=what").wantStatus(t, http.StatusBadRequest)
}
