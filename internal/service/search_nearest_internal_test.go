package service

import (
	"strings"
	"testing"
)

func TestTheNearestNameIsThatOfFewestWrongLetters(t *testing.T) {
	for _, c := range []struct{ name, typed, want string }{
		{"log in by a link", "lgoin", ""},
		{"login form: remember the company", "lgoin", "login"},
		{"login form: remember the company", "remembr compny", "remember company"},
		{"login form: remember the company", "remembr invoice", ""},
		{"refunds name the payment", "refnd", "refunds"},
		{"rückerstattung", "ruckerstatung", "rückerstattung"},
		{"pay", "pax", ""}, // of three letters none may be wrong
		{"配送料の計算", "配送費の計算", "配送料の計算"},
		{"", "login", ""},
	} {
		if near, _ := nearIn(c.name, strings.Fields(c.typed)); near != c.want {
			t.Errorf("%q near %q is %q, want %q", c.name, c.typed, near, c.want)
		}
	}
}
