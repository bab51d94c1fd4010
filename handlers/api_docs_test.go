package handlers_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"switchyard/handlers"
)

// TestTheDocumentOfTheAPIHasACallOfEachRoute, and calls no other. Only browsers take part in the sign-in.
func TestTheDocumentOfTheAPIHasACallOfEachRoute(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(handlers.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	address, method := regexp.MustCompile(`\$URL(/[^\s"?)]*)`), regexp.MustCompile(`-X (\w+)`)
	calls := map[string]bool{} // whether the document has such a route
	for _, command := range strings.Split(string(text), "curl ")[1:] {
		command, _, _ = strings.Cut(command, "\ncurl")
		found := address.FindStringSubmatch(command)
		if found == nil {
			continue
		}
		call := "GET " + found[1]
		if strings.Contains(command, "-d '{") {
			call = "POST " + found[1]
		}
		if m := method.FindStringSubmatch(command); m != nil {
			call = m[1] + " " + found[1]
		}
		calls[call] = false
	}
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for path, operations := range document.Paths {
		delete(operations, "parameters") // of all its operations
		for name := range operations {
			route := strings.ToUpper(name) + " " + path
			like := regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(route), `[^/]+`) + "$")
			shown := strings.HasPrefix(path, "/oauth/authorize") || strings.HasPrefix(path, "/oauth/callback")
			for call := range calls {
				if like.MatchString(call) {
					shown, calls[call] = true, true
				}
			}
			if !shown {
				t.Errorf("docs/api.md has no call of %s", route)
			}
		}
	}
	for call, known := range calls {
		if !known {
			t.Errorf("docs/api.md calls %s, which is no route", call)
		}
	}
}
