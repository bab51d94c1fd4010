package fold_test

import (
	"testing"

	"switchyard/internal/fold"
)

func TestText(t *testing.T) {
	for _, same := range [][]string{
		{"Uberblick", "ÜBERBLICK", "u\u0308berblick"},
		{"strasse", "Straße", "STRASSE"},
		{"cafe", "Café"},
		{"ﬁle", "FILE"},
		{"ελλαδα", "Ελλάδα"},
		{"日本", "日本"},
		{"", ""},
	} {
		for _, text := range same {
			if got, want := fold.Text(text), fold.Text(same[0]); got != want {
				t.Errorf("%q is %q, %q is %q", text, got, same[0], want)
			}
		}
	}
	if fold.Text("a") == fold.Text("b") {
		t.Error("a is b")
	}
}
