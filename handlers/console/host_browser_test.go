package console_test

import (
	"net/http"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/gatewaytest"
)

// TestARefusedHostNameSaysHowItIsAllowed, in the project server's own words: where one looks at the project, at all of them, and
// at an address before it is added.
func TestARefusedHostNameSaysHowItIsAllowed(t *testing.T) {
	browsertest.Parallel(t)
	const words = "this host name is not served here; allow it with --allow-host"
	server := gatewaytest.ProjectServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, words, http.StatusForbidden) })
	s := newStorySite(t, false, nil)
	s.Add("named", server)
	tab := browsertest.Open(t)
	for _, path := range []string{"/projects/named", "/projects"} {
		tab.Goto(s.URL + path)
		tab.Wait(`document.querySelector('main').innerText.toLowerCase().includes("` + words + `")`)
	}
	tab.Find("textbox", "URL").Type(server)
	tab.Wait(`document.getElementById('url-answer').innerText.toLowerCase().includes("` + words + `")`)
}
