package views_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryClassOfAPartHasARule: Tailwind writes rules only for the classes that it recognises in the templates.
func TestEveryClassOfAPartHasARule(t *testing.T) {
	var css []byte
	for _, sheet := range []string{"app.css", "pages.css", "overview.css", "changes.css", "flow.css", "logs.css", "project.css", "wall.css", "work.css", "yard.css"} {
		text, err := os.ReadFile("../static/" + sheet)
		if err != nil {
			t.Fatal(err)
		}
		css = append(css, text...)
	}
	templates, _ := filepath.Glob("*.templ") // the pattern is valid
	classes := 0
	for _, name := range templates {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`\bClass: +"([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			for class := range strings.FieldsSeq(match[1]) {
				classes++
				if !regexp.MustCompile(`\.` + regexp.QuoteMeta(class) + `[,{]`).Match(css) {
					t.Errorf("%s: there is no rule for the class %s", name, class)
				}
			}
		}
	}
	if classes == 0 {
		t.Error("no part has a class")
	}
}
