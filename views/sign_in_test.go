package views_test

import (
	"strings"
	"testing"

	"switchyard/views"
)

func TestTheSetupPageNamesWhatIsMissingAndItsFile(t *testing.T) {
	page := views.SignInSetUp(views.SignInSetUpProps{Missing: []string{"sign_in.token_url"}, ConfigFile: "/etc/yard.toml"})
	var b strings.Builder
	if err := page.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "1 setting is missing") || !strings.Contains(got, "/etc/yard.toml") ||
		strings.Count(got, ">missing<") != 1 || strings.Count(got, ">set<") != 3 || strings.Contains(got, "client_id = ") {
		t.Error(got)
	}
}
