package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGoroutinesAreStartedBySupervise: a panic in any other goroutine would end the process. Those of cmd/switchyard only wait
// for the ones of the packages below.
func TestGoroutinesAreStartedBySupervise(t *testing.T) {
	const root = "../../"
	for _, name := range layers {
		if name == "internal/supervise" || name == "cmd/switchyard" {
			continue
		}
		files, err := filepath.Glob(root + name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") }) {
			positions := token.NewFileSet()
			parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if g, is := n.(*ast.GoStmt); is {
					t.Errorf("%s: a bare goroutine", positions.Position(g.Pos()))
				}
				return true
			})
			for _, imported := range parsed.Imports {
				if imported.Path.Value == `"golang.org/x/sync/errgroup"` {
					t.Errorf("%s imports errgroup", file)
				}
			}
		}
	}
}
