package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
)

// TestAViewerSeesThePicturesOfAStory that are on its board, and no others.
func TestAViewerSeesThePicturesOfAStory(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\nand so on"
	s := newStorySite(t, false, map[string]string{
		"2_current/7_pay.md": "# Pay\n\n![the *form*](../shots/a%20form.png)\n\n![far](https://far.example/x.png) ![root](/etc/x.png)\n", "shots/a form.png": png,
	})
	page := s.Get("/projects/webshop/stories/7_pay").WantStatus(t, 200)
	found := regexp.MustCompile(`<img loading="lazy" src="([^"]+)" alt="the form">`).FindStringSubmatch(page.Text)
	if found == nil || strings.Count(page.Text, "<img") != 1 {
		t.Fatalf("pictures on the page: %v", regexp.MustCompile("<img[^>]*>").FindAllString(page.Text, -1))
	}
	picture := s.Get(found[1]).WantStatus(t, 200)
	for name, want := range map[string]string{
		"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
	} {
		if got := picture.Header.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if picture.Text != png {
		t.Errorf("%q", picture.Text)
	}
	hostile := gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("/api/picture", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			text := "<script>alert(1)</script>"
			if r.URL.Query().Get("path") == "large.png" {
				text = png + strings.Repeat("x", 4<<20)
			}
			_, _ = w.Write([]byte(text))
		})
	})
	s.Add("hostile", hostile)
	for path, status := range map[string]int{"page.png": 404, "large.png": 502} {
		s.Get("/api/gateway/projects/hostile/stories/7_pay/picture?path="+path).WantStatus(t, status).WantNoText(t, "<script>", "and so on")
	}
}
