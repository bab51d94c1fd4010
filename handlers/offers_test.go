package handlers_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

var (
	formsOnPage = regexp.MustCompile(`<form[^>]*>`)
	actionOf    = regexp.MustCompile(` action="([^"]*)"`)
	linksOnPage = regexp.MustCompile(`<a[^>]* href="([^"]*)"`)
)

// TestTheConsoleOffersWhatItsReaderMayDo: no page has a form or a link that would be refused.
func TestTheConsoleOffersWhatItsReaderMayDo(t *testing.T) {
	a := newAudited(t)
	a.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/{id}", gatewaytest.Says(`{"project":"x","story_id":"7_pay","story_name":"Pay","stage":"2_current","since_ms":5,`+
			`"blocked":"no keys","version":"v1","front_matter":{},"body":"# Pay","commits":[],"writable":true}`))
	}))
	a.Add("gone", "http://127.0.0.1:1")
	a.join("builder")
	if _, _, err := a.Agents.CreateJoinToken(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "gone is known to be unreachable", func() bool {
		return strings.Contains(a.Send("GET", "/api/gateway/attention", "", "Authorization", "Bearer "+a.zoe).Text, `"unreachable/gone"`)
	})
	routes := handlers.Routes(a.HTTP)
	needed := func(method, address string) (role domain.Role, known bool) {
		u, err := url.Parse(html.UnescapeString(address))
		if err != nil || u.Host != "" || u.Path == "" {
			return "", true
		}
		path := u.EscapedPath()
		role, known = neededRole[method+" "+routes.Find(chi.NewRouteContext(), method, path)]
		return role, known
	}
	pages := []string{"/", "/projects", "/projects/alpha", "/projects/gone", "/projects/alpha/stories/7_pay", "/agents", "/events", "/search?q=pay", "/access", "/audit", "/none"}
	offered := map[domain.Role]map[string]bool{}
	for _, role := range []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleAdmin} {
		_, token := gatewaytest.NamedToken(t, a.Service, "reader", role)
		login := a.Send("POST", "/login", form("token", token), "Content-Type", asForm)
		cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
		offered[role] = map[string]bool{}
		for _, page := range pages {
			for _, headers := range [][]string{{"Cookie", cookie}, {"Cookie", cookie, "HX-Request", "true"}} {
				text := a.Send("GET", page, "", headers...).Text
				addresses := map[string]string{}
				for _, tag := range formsOnPage.FindAllString(text, -1) {
					action := actionOf.FindStringSubmatch(tag) // none where a script fills it in
					if action != nil && strings.Contains(tag, `method="post"`) {
						addresses[action[1]] = "POST"
					}
				}
				for _, link := range linksOnPage.FindAllStringSubmatch(text, -1) {
					if addresses[link[1]] == "" {
						addresses[link[1]] = "GET"
					}
				}
				for address, method := range addresses {
					role2, known := needed(method, address)
					offered[role][method+" "+address] = true
					if !known || role2 != "" && !role.Allows(role2) {
						t.Errorf("%s offers a %s %s %s, which needs %q", page, role, method, address, role2)
					}
				}
			}
		}
	}
	for offer, least := range map[string]domain.Role{
		"POST /switch": "operator", "POST /attention/acknowledge": "operator", "POST /agents": "operator", "POST /projects/alpha/stories/7_pay": "operator",
		"POST /projects/alpha/stories": "operator", "POST /projects": "admin", "POST /projects/alpha": "admin", "POST /projects/alpha/remove": "admin",
		"GET /access": "admin", "GET /audit": "admin", "GET /audit.csv": "admin", "POST /access": "admin", "GET /bot-config": "admin", "GET /oauth/authorize": "admin", "GET /sign-in": "admin", "POST /theme": "viewer", "POST /logout": "viewer", "GET /agents": "viewer",
	} {
		for role, all := range offered {
			if all[offer] != role.Allows(least) {
				t.Errorf("%s is offered to a %s: %v", offer, role, all[offer])
			}
		}
	}
}
