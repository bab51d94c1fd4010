package views_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"switchyard/views"
)

// The picture of an unknown kind is that of a webhook, so that a kind without one of its own shows as a second webhook.
func TestEveryKindOfTargetHasItsOwnPicture(t *testing.T) {
	nothing := templ.Raw("")
	page, err := templ.ToGoHTML(t.Context(), views.Notifications(views.NotificationsProps{}, nothing))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), `<ul class="kinds"`)
	list, _, _ = strings.Cut(list, "</ul>")
	kinds := regexp.MustCompile(`(?s)<svg[^>]*>(.*?)</svg>\s*<b>(.*?)</b>`).FindAllStringSubmatch(list, -1)
	if len(kinds) < 5 || len(kinds) != strings.Count(list, "<li>") {
		t.Fatalf("%d kinds with a picture, of %d", len(kinds), strings.Count(list, "<li>"))
	}
	shown := map[string]string{}
	for _, kind := range kinds {
		picture, name := kind[1], kind[2]
		if other, taken := shown[picture]; taken {
			t.Errorf("%s has the picture of %s", name, other)
		}
		shown[picture] = name
	}
}
