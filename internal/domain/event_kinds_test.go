package domain_test

import (
	"os"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

// TestEachKindOfEventIsDocumented: the API's description names it, and the manual if project servers send it.
func TestEachKindOfEventIsDocumented(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, event, _ := strings.Cut(read("handlers/api/openapi.json"), `"When the gateway stored it."`)
	_, event, _ = strings.Cut(event, `"type": {`)
	types, _, _ := strings.Cut(event, "}")
	manual := read("docs/project-server.md")
	// Of ours, which project servers do not send, records from them are stored as foreign ones.
	ours, all := map[string]bool{}, map[string]bool{}
	for _, kind := range domain.EventKinds {
		ours[kind.Foreign], all[string(kind.Type)] = true, true
	}
	for _, kind := range domain.EventKinds {
		if !strings.Contains(types, string(kind.Type)) {
			t.Errorf("openapi.json does not name %s", kind.Type)
		}
		sent := !ours[string(kind.Type)] && !all[kind.Foreign]
		if sent && !strings.Contains(manual, "| `"+string(kind.Type)+"` |") {
			t.Errorf("docs/project-server.md does not name %s", kind.Type)
		}
	}
}
