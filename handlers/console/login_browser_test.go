package console_test

import (
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/browsertest"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/login"
	"switchyard/internal/logintest"
	"switchyard/internal/service"
)

func TestLoggingInThroughAProviderInABrowser(t *testing.T) {
	browsertest.Parallel(t)
	provider := logintest.New(t)
	s := gatewaytest.NewSite(t, service.Options{}, handlers.Gateway{Login: login.New(config.Login{
		Issuer: provider.Issuer, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, RolesClaim: "groups",
		Roles: domain.RoleLists{Viewers: []string{"staff"}},
	}, logintest.Spend())})
	provider.User(map[string]any{"sub": "1"})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/events")
	tab.Find("heading", "Log in")
	tab.Accessible()
	tab.Find("link", "Log in with "+strings.TrimPrefix(provider.Issuer, "http://")).Click()
	tab.WaitText("may not use this gateway")
	tab.Accessible()
	provider.User(map[string]any{"sub": "1", "groups": []string{"staff"}})
	tab.Find("link", "Log in with "+strings.TrimPrefix(provider.Issuer, "http://")).Click()
	tab.Find("heading", "Events")
	if complaints := tab.Complaints(); len(complaints) != 1 || !strings.Contains(complaints[0], "403") {
		t.Errorf("the browser's console: %q", complaints)
	}
	if sessions := s.Access.Sessions(); len(sessions) != 1 || sessions[0].Who != "1" || sessions[0].Role != domain.RoleViewer {
		t.Errorf("sessions %+v", sessions)
	}
}
