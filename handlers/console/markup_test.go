package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
	"switchyard/static"
)

var (
	htmlTag       = regexp.MustCompile(`<(/?)([a-z][a-z0-9]*)((?:\s+[^\s=>/]+(?:="[^"]*")?)*)\s*/?>`)
	htmlAttribute = regexp.MustCompile(`([^\s=]+)(?:="([^"]*)")?`)
)

// The rules of HTML for the elements that our pages use.
var (
	voidElements   = []string{"meta", "link", "input", "br", "hr", "img"}
	phrasingOnly   = []string{"span", "p", "h1", "h2", "h3", "button", "label", "code", "summary", "time", "dt", "legend", "b", "kbd", "bdi", "strong", "pre"}
	flowElements   = []string{"div", "form", "p", "ul", "ol", "dl", "table", "section", "details", "fieldset", "h1", "h2", "h3", "nav", "header", "footer", "pre", "search"}
	namelessByRule = []string{"div", "span", "p", "code", "b", "strong", "time"}
)

// markupFaults checks a page against the rules of HTML that are easy to break in a template.
func markupFaults(page string) (faults []string) {
	var open []string
	ids := map[string]bool{}
	for _, match := range htmlTag.FindAllStringSubmatch(page, -1) {
		closing, name, attributes := match[1] != "", match[2], map[string]string{}
		for _, attribute := range htmlAttribute.FindAllStringSubmatch(match[3], -1) {
			attributes[attribute[1]] = attribute[2]
		}
		fault := func(what string) { faults = append(faults, what+": "+match[0]) }
		if closing {
			if len(open) == 0 || open[len(open)-1] != name {
				fault("closes what is not open")
			} else {
				open = open[:len(open)-1]
			}
			continue
		}
		for _, outer := range open {
			if slices.Contains(phrasingOnly, outer) && slices.Contains(flowElements, name) {
				fault("is inside " + outer)
			}
		}
		inSVG := slices.Contains(open, "svg") // where a tag may close itself
		if !slices.Contains(voidElements, name) && !(inSVG && strings.HasSuffix(match[0], "/>")) {
			open = append(open, name)
		}
		for attribute := range attributes {
			if strings.HasPrefix(attribute, "hx-") {
				fault("an attribute that HTML does not know")
			}
		}
		_, labelled := attributes["aria-label"]
		_, labelledBy := attributes["aria-labelledby"]
		role, hasRole := attributes["role"]
		switch {
		case name == "form" && hasRole:
			fault("a form has a role")
		case (labelled || labelledBy) && slices.Contains(namelessByRule, name) && role == "":
			fault("a label on an element without a role")
		}
		if id, ok := attributes["id"]; ok {
			if ids[id] {
				fault("an id that is there already")
			}
			ids[id] = true
		}
	}
	if len(open) > 0 {
		faults = append(faults, "not closed: "+strings.Join(open, " "))
	}
	if !strings.Contains(page, `<meta name="description" content="`) {
		faults = append(faults, "no description")
	}
	return faults
}

func TestEveryPageIsValidHTML(t *testing.T) {
	s := newWholeSite(t)
	s.add("alpha-name", board("1_backlog:", "2_current: 3_story_a, 4_story_a-b", "3_done:"))
	s.add("alpha,name", nil)
	check := func(a gatewaytest.Answer) {
		for _, fault := range markupFaults(a.Text) {
			t.Errorf("%s %s: %s", a.Request.Method, a.Request.URL, fault)
		}
	}
	check(s.Get("/login"))
	s.Submit("/login", "token", gatewaytest.AdminToken).WantStatus(t, http.StatusSeeOther)
	for _, path := range []string{
		"/", "/?q=al&show=troubled", "/?q=none", "/projects", "/projects/alpha", "/projects/alpha-name", "/projects/alpha/stories/12_story_pay", "/projects/alpha/stories/1_story_first", "/search", "/search?q=story", "/waiting", "/questions", "/questions?state=all", "/notifications?kind=mail", "/wall", "/flow", "/projects/gamma", "/agents",
		"/events", "/events?q=none", "/events?before=3", "/bot-config", "/sign-in", "/sign-in/setup", "/no-such-page", "/callback?error=no",
	} {
		check(s.Get(path))
	}
	check(s.Submit("/agents"))
	check(s.Submit("/projects", "name", "", "url", "x"))
}

// TestTheStylesheetHoldsOnlyWhatPagesUse guards against rules that Tailwind generates from words that are not classes.
func TestTheStylesheetHoldsOnlyWhatPagesUse(t *testing.T) {
	page := newConsoleSite(t).Get("/")
	file, ok := static.Lookup(regexp.MustCompile(`/static/app\.[0-9a-f]+\.css`).FindString(page.Text))
	if !ok {
		t.Fatal("no stylesheet")
	}
	for _, word := range []string{".container", ".static", ".filter", ".blur", ".inline{", ".hidden", ".table-cell", `\[from\:to\]`, ".visible", ".fixed-"} {
		if strings.Contains(string(file.Content), word) {
			t.Errorf("the stylesheet has a rule for %s", word)
		}
	}
}
