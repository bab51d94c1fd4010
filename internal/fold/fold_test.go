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

func TestFindReturnsWhereWordsAreInTheText(t *testing.T) {
	for _, c := range []struct {
		text  string
		words []string
		want  string
	}{
		{"Die Übersicht der Straße", []string{"uber", "strasse"}, "Die [Über]sicht der [Straße]"},
		{"Straße", []string{"stras"}, "[Straß]e"},
		{"U\u0308ber", []string{"u"}, "[U\u0308]ber"},
		{"login, LOGIN", []string{"login", "gin"}, "[login], [LOGIN]"},
		{"日本語", []string{"本"}, "日[本]語"},
		{"a\xffb", []string{"b"}, "a\xff[b]"},
		{"nothing", []string{"x", ""}, "nothing"},
		{"", []string{"x"}, ""},
	} {
		got, at := "", 0
		for _, span := range fold.Find(c.text, c.words) {
			got += c.text[at:span.From] + "[" + c.text[span.From:span.To] + "]"
			at = span.To
		}
		if got += c.text[at:]; got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.words, c.text, got, c.want)
		}
	}
}
