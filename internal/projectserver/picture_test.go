package projectserver_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const png = "\x89PNG\r\n\x1a\nand so on"

// TestPicturesAreServedFromTheBoardOnly: regular files that are pictures by their content, wherever a path or a link leads.
func TestPicturesAreServedFromTheBoardOnly(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.png"), []byte(png), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStories(t, false, map[string]string{
		"1_backlog/1_a.md": "# A\n", "1_backlog/b.png": png, "shots/c.txt": "GIF89a and so on", "1_backlog/page.png": "<html><script>alert(1)</script>",
		"1_backlog/drawing.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>`, "1_backlog/large.png": png + strings.Repeat("x", 4<<20),
	})
	for link, to := range map[string]string{"1_backlog/link.png": filepath.Join(outside, "secret.png"), "out": outside, "in": "shots"} {
		if err := os.Symlink(to, filepath.Join(s.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	up, _ := filepath.Rel(filepath.Join(s.dir, "1_backlog"), outside)
	for path, media := range map[string]string{
		"b.png": "image/png", "./b.png": "image/png", "../shots/c.txt": "image/gif", "../1_backlog/../1_backlog/b.png": "image/png",
		"page.png": "", "drawing.svg": "", "large.png": "", "link.png": "", "../out/secret.png": "", "../in/c.txt": "", up + "/secret.png": "",
		outside + "/secret.png": "", "": "", ".": "", "..": "", "1_a.md": "", "none.png": "", "b.png\x00": "", `..\shots\c.txt`: "",
	} {
		status, text, header := s.ask("GET", "/api/picture?story_id=1_a&path="+url.QueryEscape(path), "")
		switch {
		case media == "" && (status != 404 || strings.Contains(text, png)):
			t.Errorf("%q: %d %.30q", path, status, text)
		case media != "" && (status != 200 || header.Get("Content-Type") != media || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Content-Security-Policy") != "default-src 'none'; sandbox"):
			t.Errorf("%q: %d %v", path, status, header)
		}
	}
	if status, _, _ := s.ask("GET", "/api/picture?story_id=2_b&path=b.png", ""); status != 404 {
		t.Errorf("of no story: %d", status)
	}
}
