package signin_test

import (
	"net/url"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/signin"
)

func value(p *string) string {
	if p == nil {
		return "(missing)"
	}
	return *p
}

func TestPastedCallbacksAreRead(t *testing.T) {
	for text, want := range map[string][2]string{
		"http://localhost:3000/callback?code=c&state=s":    {"c", "s"},
		" https://h.test/p?x=1&state=s&code=a%2Fb+c#_=_\n": {"a/b c", "s"},
		"http://localhost:3000/callback?code=&state=":      {"", ""},
		"code=c&state=s":     {"c", "s"},
		"c#s":                {"c", "s"},
		"4/0A-b_c.d~e+f=#S1": {"4/0A-b_c.d~e+f=", "S1"},
		"http://localhost:3000/callback?code=c&state=s&code=other": {"c", "s"},
		"http://localhost:3000/callback?code=50%;c&state=s":        {"50%;c", "s"},
	} {
		got, err := signin.ParsePastedCallback(text)
		if err != nil || value(got.Code) != want[0] || value(got.State) != want[1] || got.Error != nil {
			t.Errorf("%q: code %s, state %s, %v; want %q", text, value(got.Code), value(got.State), err, want)
		}
	}
}

func FuzzParsePastedCallback(f *testing.F) {
	for _, text := range []string{"", "#", "a#b", "?code=a&state=b", "http://x/?error", "code=%zz&state=1", "a#b#c", "://#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := signin.ParsePastedCallback(text)
		switch {
		case err != nil && domain.CodeOf(err) != domain.Invalid:
			t.Errorf("%q: %v", text, err)
		case err == nil && got.Error == nil && (got.Code == nil || got.State == nil):
			t.Errorf("%q is taken for a callback without code or state", text)
		}
		code, state := "c"+url.QueryEscape(text), "s"+url.QueryEscape(text)
		again, err := signin.ParsePastedCallback(code + "#" + state)
		if err != nil || *again.Code != code || *again.State != state {
			t.Errorf("%s#%s: %v", code, state, err)
		}
	})
}
