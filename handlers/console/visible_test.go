package console_test

import "testing"

// TestNoPageHidesACharacter of a story: escape sequences and turns of direction are shown by their codes, and what joins emoji stays.
func TestNoPageHidesACharacter(t *testing.T) {
	s := newConsoleSite(t)
	const family = "👩\u200d👧"
	stages := board("2_current: 7_pay")
	stages[0].Items[0].StoryName = "\x1b[31mred\a \u202egnp.exe " + family
	s.add("alpha", stages)
	s.Answered()
	for _, path := range []string{"/", "/projects/alpha", "/search?q=red", "/projects/alpha/stories/7_pay"} {
		page := s.Get(path).WantStatus(t, 200)
		page.WantNoText(t, "\x1b", "\a", "\u202e")
		if path == "/" {
			continue // it has no names
		}
		page.WantText(t, "U+0007 U+202Egnp.exe "+family)
	}
}
