package console_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/views"
)

func TestASearchSaysWhatIsOnABoardNow(t *testing.T) {
	s := newStorySite(t, false, map[string]string{"3_qa/2_story_audit.md": auditLog})
	s.Get("/search?q=audit").WantNoText(t, "On a board now")
	s.move("webshop", "9_story_audit_old", "3_qa", "5_done", time.Now())
	s.Get("/search?q=audit").WantText(t, "On a board now", `<span class="n">1</span>`, auditPage, "9_story_audit_old", "signal-none gone", "no longer on the board")
	s.Get("/search?q=audit&board=now").WantText(t, "/search?q=audit&amp;kind=stories&amp;board=now", "Everywhere", auditPage).WantNoText(t, "9_story_audit_old")
}

// TestASearchSaysSinceWhenAStoryIsBlocked, once, and not when it came into its stage.
func TestASearchSaysSinceWhenAStoryIsBlocked(t *testing.T) {
	s := newConsoleSite(t)
	list := board("1_backlog:", "2_current: 1_story_keys!waiting for a key", "5_done:")
	now := time.Now()
	s.boards.set("alpha", list)
	s.Record("alpha", moved("1_story_keys", "1_backlog", "2_current", now.Add(-100*time.Hour)),
		fmt.Sprintf(`{"type":"story_blocked","story_id":"1_story_keys","reason":"a key","timestamp_ms":%d}`, now.Add(-50*time.Hour).UnixMilli()))
	s.add("alpha", nil)
	s.Get("/search?q=keys").WantText(t, `signal-stop">blocked</span>`, "2 d").WantNoText(t, "4 d")
}

func TestASearchThatFindsNothingAsksWhatWasMeant(t *testing.T) {
	s := newStorySite(t, false, map[string]string{"3_qa/2_story_audit.md": "# Rückerstattung per Überweisung\n"})
	s.join("night-shift")
	for typed, meant := range map[string]string{
		"uberweisnug": "uberweisung", "rückerstatung per uberw": "ruckerstattung per uberweisung", "webshpo": "webshop", "nigth": "night",
	} {
		page := s.Get("/search?q="+strings.ReplaceAll(typed, " ", "+")).WantText(t, "Nothing found", "Did you mean", ">"+meant+"</a>")
		link := regexp.MustCompile(`Did you mean\s+<a href="([^"]+)"`).FindStringSubmatch(page.Text)[1]
		s.Get(html.UnescapeString(link)).WantNoText(t, "Nothing found")
		if options := s.palette(t, typed); !slices.Contains(options, "Open results for “"+meant+"” | Did you mean this?") {
			t.Errorf("the palette offers %q for %q", options, typed)
		}
	}
	s.Get("/search?q=nothing-like-it").WantNoText(t, "Did you mean")
}

// TestThePaletteOpensEveryPage that the navigation, the menu and the keys lead to, and shows their keys.
func TestThePaletteOpensEveryPage(t *testing.T) {
	s := newStorySite(t, false, nil)
	frame := s.Get("/").Text
	for _, page := range views.Pages {
		if options := s.palette(t, string(page.Page)); !slices.Contains(options, "Open "+string(page.Page)+" | "+page.Note) {
			t.Errorf("the palette offers %q", options)
		}
		if page.In != views.InPalette && !strings.Contains(frame, `href="`+page.URL+`"`) {
			t.Errorf("nothing links to %s", page.URL)
		}
	}
	options := strings.Join(s.palette(t, ""), "\n")
	if !strings.Contains(options, "Open Notifications | ") || strings.Contains(options, "Open Agents | ") {
		t.Errorf("with nothing typed the palette offers %q", options)
	}
}
