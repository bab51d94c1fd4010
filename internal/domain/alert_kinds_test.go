package domain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

// TestEachKindOfAlertIsComplete: it has a word, a text and a link, and the description of the API names it.
func TestEachKindOfAlertIsComplete(t *testing.T) {
	description, err := os.ReadFile("../../handlers/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	_, enum, _ := strings.Cut(string(description), `"description": "Something that needs attention."`)
	_, enum, _ = strings.Cut(enum, `"kind": {`)
	enum, _, _ = strings.Cut(enum, "]")
	kinds := kindsOfAlerts(t)
	if len(kinds) < 9 {
		t.Errorf("found only %q", kinds)
	}
	for _, kind := range kinds {
		a := domain.Alert{Kind: kind, Story: &domain.Item{StoryID: "1_story"}}
		if kind.Word() == "" || a.Text() == "" || !strings.HasPrefix(a.Link(), "/") {
			t.Errorf("%s: %q, %q, %q", kind, kind.Word(), a.Text(), a.Link())
		}
		if !strings.Contains(enum, strconv.Quote(string(kind))) {
			t.Errorf("openapi.json does not name %s", kind)
		}
	}
}

// kindsOfAlerts returns the constants of the type AlertKind.
func kindsOfAlerts(t *testing.T) (kinds []domain.AlertKind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "alert_kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "AlertKind" {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, domain.AlertKind(value))
			}
		}
		return true
	})
	return kinds
}
