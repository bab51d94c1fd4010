package handlers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchyard/handlers"
)

// TestOpenAPIIsFitForGenerators checks what client generators need, and what their users would miss.
func TestOpenAPIIsFitForGenerators(t *testing.T) {
	var document struct {
		Info struct {
			Description string
			Contact     struct{ Name string }
		}
		Paths      map[string]map[string]any
		Components map[string]map[string]any
	}
	if err := json.Unmarshal(handlers.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	if document.Info.Description == "" || document.Info.Contact.Name == "" {
		t.Error("the document says neither what it is for nor whom to ask")
	}
	taken := map[string]string{} // name of a generated type → where it comes from
	take := func(name, from string) {
		t.Helper()
		name = strings.ToLower(name)
		if other := taken[name]; other != "" {
			t.Errorf("%s and %s have one name", from, other)
		}
		taken[name] = from
	}
	for _, kind := range []string{"parameters", "schemas", "responses"} {
		for name, component := range document.Components[kind] {
			take(name, kind+"/"+name)
			wantDescribed(t, kind+"/"+name, component)
			wantTyped(t, kind+"/"+name, component)
		}
	}
	for path, operations := range document.Paths {
		for method, operation := range operations {
			where := strings.ToUpper(method) + " " + path
			fields, ok := operation.(map[string]any)
			if !ok { // parameters of all operations
				wantTyped(t, where, operation)
				continue
			}
			id, _ := fields["operationId"].(string)
			if id == "" || fields["summary"] == nil {
				t.Errorf("%s has no operationId or no summary", where)
			}
			take(id, where)
			parameters, _ := fields["parameters"].([]any)
			for i, parameter := range parameters {
				wantDescribed(t, fmt.Sprint(where, " parameter ", i), parameter)
			}
			wantTyped(t, where, operation)
		}
	}
}

func wantDescribed(t *testing.T, where string, value any) {
	t.Helper()
	if fields, ok := value.(map[string]any); !ok || fields["description"] == nil && fields["$ref"] == nil {
		t.Errorf("%s has no description", where)
	}
}

// wantTyped fails for each property below value that has no type or no description.
func wantTyped(t *testing.T, where string, value any) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			wantTyped(t, fmt.Sprint(where, "/", i), element)
		}
	case map[string]any:
		properties, _ := value["properties"].(map[string]any)
		for name, property := range properties {
			wantDescribed(t, where+"/"+name, property)
			fields, _ := property.(map[string]any)
			if fields["type"] == nil && fields["$ref"] == nil && fields["oneOf"] == nil && fields["allOf"] == nil {
				t.Errorf("%s/%s has no type", where, name)
			}
		}
		if value["const"] != nil && value["type"] == nil {
			t.Errorf("%s: a constant has no type", where)
		}
		for name, element := range value {
			wantTyped(t, where+"/"+name, element)
		}
	}
}
